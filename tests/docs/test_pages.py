import ast
import re
import subprocess
import sys
from importlib import import_module

import pytest
from pages import PAGES, ROOT, Reader, blocks

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.data.partitions.registry import PARTITIONS
from fedcohort.learning.models import MODELS
from fedcohort.reports import figures, report
from fedcohort.selection.registry import SELECTORS

FEW = 3  # blocks of Python that may be shown without being run


@pytest.fixture(autouse=True)
def restored(monkeypatch, tmp_path):
    """Play in a folder of one's own; what a page registers is forgotten afterwards."""
    for registry in (SELECTORS, AGGREGATIONS, MODELS, PARTITIONS):
        for name in list(registry):
            monkeypatch.setitem(registry, name, registry[name])
    before = [set(registry) for registry in (SELECTORS, AGGREGATIONS, MODELS, PARTITIONS)]
    monkeypatch.chdir(tmp_path)
    for module in (figures, report):  # spare the time that figures take
        monkeypatch.setattr(module, "available", lambda: False)
    yield
    for registry, names in zip((SELECTORS, AGGREGATIONS, MODELS, PARTITIONS), before, strict=True):
        for name in set(registry) - names:
            del registry[name]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_everything_on_a_page_runs_and_prints_what_it_says(page, tmp_path):
    Reader(page, tmp_path).read()


def test_few_blocks_are_shown_without_being_run_and_each_says_why():
    idle = [block for page in PAGES for block in blocks(page) if block.mark.startswith("not run")]
    assert len(idle) <= FEW
    assert all(len(block.mark) > len("not run: ") for block in idle)


def test_a_page_with_a_mistake_does_not_pass(tmp_path):
    wrong = {
        "```python\n1 / 0\n```\n": ZeroDivisionError,
        "```bash\nfedcohort compare --no-such-flag\n```\n": Exception,
        "```bash\nfedcohort no-such-command\n```\n": AssertionError,
        "```bash\nmake no-such-target\n```\n": AssertionError,
        "```bash\npip install 'fedcohort[nothing]'\n```\n": AssertionError,
        "```bash\nrm --force\n```\n": AssertionError,
        "```toml\n= 1\n```\n": ValueError,
        '```python\nprint(1)\n```\n\n```text title="Output"\n2\n```\n': AssertionError,
        "<!-- run -->\n```bash\nfedcohort simulate --rounds 0\n```\n": AssertionError,
        "  ```python\n1\n  ```\n": AssertionError,
    }
    page = ROOT / "docs" / "index.md"
    for text, error in wrong.items():
        bad = tmp_path / page.name
        bad.write_text(text)
        with pytest.raises(error):
            Reader(bad, tmp_path).read()


CODE = ROOT / "docs/paper/code.md"
TESTS = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)::(test_\w+)`")
THINGS = re.compile(r"`(fedcohort(?:\.\w+)+)`")


def test_every_function_and_test_in_the_table_of_the_paper_exists():
    text = CODE.read_text(encoding="utf-8")
    tests, things = TESTS.findall(text), THINGS.findall(text)
    assert len(tests) > 30
    assert len(things) > 30
    assert [f"{file}::{name}" for file, name in tests if name not in functions(file)] == []
    assert [name for name in things if not exists(name)] == []
    assert set(re.findall(r"`[^`]*test_[^`]*`", text)) == {
        f"`{file}::{name}`" for file, name in tests
    }


def test_every_test_that_the_errata_name_exists():
    """Names there may be cut short by an ellipsis, at either end; those without a file are of the one named before."""
    text = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
    named = re.findall(r"`(?:(test_\w+\.py)::)?(…?\w+…?)`", text)
    file, missing, count = "", [], 0
    for of, name in named:
        file = of or file
        if not of and not name.startswith(("…", "test_")):
            continue
        count += 1
        part = name.strip("…")
        pattern = rf"{'' if name.startswith('…') else '^'}{part}{'' if name.endswith('…') else '$'}"
        if not any(re.search(pattern, known) for known in functions(file)):
            missing.append(f"{file}::{name}")
    assert count > 15
    assert missing == []


def functions(file):
    """Return the names of the tests in a file, wherever it lies."""
    paths = list((ROOT / "tests").rglob(file))
    assert paths, f"there is no {file}"
    return {
        node.name
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }


def exists(name):
    """Return whether a dotted name is a module or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False


@pytest.mark.slow
def test_the_selector_of_the_contributing_page_keeps_the_contract_of_all_selectors(tmp_path):
    """Register it before the tests are collected, and let the contract be played on it."""
    (source,) = [
        block.text
        for block in blocks(ROOT / "CONTRIBUTING.md")
        if block.title == "selection/least_asked.py"
    ]
    assert len(source.strip().splitlines()) <= 48
    line = 'SELECTORS["least-asked"] = lambda of: LeastAsked(of.num_clients, of.cohort_size, rng=of.rng)'
    assert (
        "LeastAsked(of.num_clients, of.cohort_size, rng=of.rng)"
        in (ROOT / "CONTRIBUTING.md").read_text()
    )
    (tmp_path / "registers.py").write_text(
        f"{source}\nfrom fedcohort.selection.registry import SELECTORS\n{line}\n"
    )
    contract = ROOT / "tests/selection/test_selectors.py"
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "registers",
        "-k",
        "least-asked",
        str(contract),
    ]
    done = subprocess.run(
        words,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20
