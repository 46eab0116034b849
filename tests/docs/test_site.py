import importlib.util
import os
import re
import subprocess
import sys

import pytest
from pages import DOCS, RESULTS, ROOT

import fedcohort

pytest.importorskip("mkdocs", reason="the documentation needs pip install 'fedcohort[docs]'")
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `make docs` does: any warning is an error."""
    out = tmp_path_factory.mktemp("site")
    # With --quiet MkDocs would not count warnings.
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("mkdocs_hooks", ROOT / "scripts/mkdocs_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_every_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in DOCS}
    for path in RESULTS:
        if path.name not in ("README.md", "what-helps.md"):  # pages of docs include these two
            pages.add(path.relative_to(ROOT).with_suffix(".html"))
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 30
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert LOADED.findall(text) == []
        assert re.findall(r"@import|url\(\"?https?:", text) == []


@pytest.mark.slow
def test_the_reference_has_every_public_name(site):
    from fedcohort import flower

    anchors = set()
    for path in (site / "reference").glob("*.html"):
        for anchor in re.findall(r'id="([\w.]+)"', path.read_text(encoding="utf-8")):
            anchors.add(anchor.split(".")[-1])

    names = [*fedcohort.__all__, *flower.__all__]
    assert [name for name in names if name not in anchors] == []


@pytest.mark.slow
def test_the_help_of_every_command_is_on_the_page(site):
    from fedcohort import cli

    text = (site / "reference/command-line.html").read_text(encoding="utf-8")
    shown = set(re.findall(r"Usage: fedcohort (\w+)", text))
    assert shown == {
        command.name or command.callback.__name__ for command in cli.app.registered_commands
    }


@pytest.mark.slow
def test_the_errata_are_those_of_the_repository(site):
    assert "<td>E20</td>" in (site / "paper/errata.html").read_text(encoding="utf-8")


class Known:
    """The files of a site."""

    def __init__(self, *names):
        self.names = names

    def get_file_from_path(self, name):
        return name if name in self.names else None


def test_links_of_an_included_file_lead_to_the_sites_own_copy_or_are_no_links(
    hooks, tmp_path, monkeypatch
):
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/README.md").write_text(
        "# Results\n\n"
        "![curves](figure6.svg) [more](../docs/benchmarks.md#learning) "
        "[code](../src/x.py) [web](https://a.b/c)\n"
        "```bash\n# no heading\n```\n## Tables\n"
    )
    files = Known("results/figure6.svg", "benchmarks.md")
    uri = hooks.PurePosixPath("paper/results.md")

    assert hooks.include("results/README.md", uri, files, has_title=True) == (
        "## Results\n\n"
        "![curves](../results/figure6.svg) [more](../benchmarks.md#learning) "
        "`code` [web](https://a.b/c)\n"
        "```bash\n# no heading\n```\n### Tables\n"
    )
    text = hooks.include("results/README.md", uri, files, has_title=False)
    assert text.startswith("# Results")


def test_including_a_file_that_does_not_exist_is_an_error(hooks, tmp_path, monkeypatch):
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    uri = hooks.PurePosixPath("paper/results.md")
    with pytest.raises(FileNotFoundError, match=r"paper/results\.md includes results/README\.md"):
        hooks.include("results/README.md", uri, Known(), has_title=True)
