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
from fedcohort.reports import figures
from fedcohort.selection.registry import SELECTORS
from fedcohort.world.registry import WORLDS

MOST_BLOCKS_NOT_RUN = 3
REGISTRIES = (SELECTORS, WORLDS, AGGREGATIONS, MODELS, PARTITIONS)


def page_name(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def own_folder_and_registries(monkeypatch, tmp_path):
    """Follow a page in an empty folder, and forget what it registers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)  # drawing takes too long here

    before = [dict(registry) for registry in REGISTRIES]
    yield
    for registry, entries in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(entries)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_everything_on_a_page_runs_and_prints_what_it_says(page, tmp_path):
    Reader(page, tmp_path).read()


def test_few_blocks_are_shown_without_being_run_and_each_says_why():
    marks = []
    for page in PAGES:
        marks += [block.mark for block in blocks(page) if block.mark.startswith("not run")]

    assert len(marks) <= MOST_BLOCKS_NOT_RUN
    assert all(len(mark) > len("not run: ") for mark in marks)


MISTAKES = {
    "```python\n1 / 0\n```\n": ZeroDivisionError,
    "```bash\nfedcohort compare --no-such-flag\n```\n": Exception,
    "```bash\nfedcohort no-such-command\n```\n": AssertionError,
    "```bash\nmake no-such-target\n```\n": AssertionError,
    "```bash\npip install 'fedcohort[nothing]'\n```\n": AssertionError,
    "```bash\npip install '.[nothing]'\n```\n": AssertionError,
    "```bash\nrm --force\n```\n": AssertionError,
    "```toml\n= 1\n```\n": ValueError,
    '```python\nprint(1)\n```\n\n```text title="Output"\n2\n```\n': AssertionError,
    "<!-- run -->\n```bash\nfedcohort simulate --rounds 0\n```\n": AssertionError,
    "  ```python\n1\n  ```\n": AssertionError,
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_page_with_a_mistake_does_not_pass(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(MISTAKES[text]):
        Reader(page, tmp_path).read()


CODE = ROOT / "docs/paper/code.md"
TESTS = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)::(test_\w+)`")
NAMES = re.compile(r"`(fedcohort(?:\.\w+)+)`")


def test_every_function_and_test_in_the_table_of_the_paper_exists():
    text = CODE.read_text(encoding="utf-8")
    tests = TESTS.findall(text)
    names = NAMES.findall(text)
    assert len(tests) > 30
    assert len(names) > 30

    assert [f"{file}::{test}" for file, test in tests if test not in functions_of(file)] == []
    assert [name for name in names if not exists(name)] == []

    understood = {f"`{file}::{test}`" for file, test in tests}
    assert set(re.findall(r"`[^`]*test_[^`]*`", text)) == understood


def test_every_test_that_the_errata_name_exists():
    """A test named without a file is in the file named last."""
    text = (ROOT / "DEVIATIONS.md").read_text(encoding="utf-8")
    named = re.findall(r"`(?:(test_\w+\.py)::)?(test_\w+)`", text)
    assert len(named) > 15

    file = ""
    missing = []
    for given_file, test in named:
        file = given_file or file
        if test not in functions_of(file):
            missing.append(f"{file}::{test}")
    assert missing == []


def functions_of(file):
    """Return the names of the functions in all test files of this name."""
    paths = list((ROOT / "tests").rglob(file))
    assert paths, f"there is no {file}"

    names = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
    return names


def exists(name):
    """Return whether a dotted name is a module or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part, None)
        return value is not None
    return False


def test_the_files_and_registries_that_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `(.*?)` \| `(\w+)`, `(.*?)` \| `(.*?)`", text, re.MULTILINE)
    assert len(rows) == 7

    for file, registry, registry_file, test in rows:
        module = registry_file.removesuffix(".py").replace("/", ".")
        assert exists(f"fedcohort.{module}.{registry}"), registry
        for path in (ROOT / "src/fedcohort" / file, ROOT / "tests" / test):
            assert path.exists() or ("NAME" in path.name and path.parent.is_dir()), path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "title", "scheme"),
    [
        ("CONTRIBUTING.md", "selection/least_asked.py", "LeastAsked"),
        ("docs/how-to/selector.md", "most_reliable.py", "MostReliable"),
    ],
)
def test_the_selectors_of_the_pages_keep_the_contract_of_all_selectors(
    page, title, scheme, tmp_path
):
    """Register the class before the tests are collected, and play the contract on it."""
    (source,) = [block.text for block in blocks(ROOT / page) if block.title == title]
    code = [line for line in source.splitlines() if line.strip()]
    assert len(code) <= 25
    assert f"Scheme({scheme})" in (ROOT / page).read_text()
    (tmp_path / "registers.py").write_text(
        f"{source}\n"
        "from fedcohort.selection.registry import SELECTORS, Scheme\n"
        f'SELECTORS["of-a-page"] = Scheme({scheme})\n'
    )
    contract = str(ROOT / "tests/selection/test_contract.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "registers", "-k", "of-a-page", contract],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20
