"""The reference lists every public name, and each entry says what its arguments mean."""

import dataclasses
import inspect
import re
from importlib import import_module

import pytest
import yaml
from pages import ROOT

import fedcohort

pytest.importorskip("torch", reason="the reference lists names that need PyTorch")
pytest.importorskip("flwr", reason="the reference lists names that need Flower")

PAGES = sorted((ROOT / "docs/reference").glob("*.md"))
ENTRY = re.compile(r"^::: (?P<name>[\w.]+)\n(?P<options>(?: +.*\n)*)", re.MULTILINE)


def entries():
    """Yield the dotted name of everything that the pages of the reference list."""
    for page in PAGES:
        for match in ENTRY.finditer(page.read_text(encoding="utf-8")):
            options = yaml.safe_load(match["options"]) or {}
            members = options.get("options", {}).get("members")
            if members is None:
                yield from public_names(match["name"])
            else:
                for member in members or ():
                    yield f"{match['name']}.{member}"


def public_names(name):
    """Return the name itself, or if it is a module the public names defined in it."""
    value = resolve(name)
    if not inspect.ismodule(value):
        return [name]

    names = []
    for member, thing in vars(value).items():
        is_local = getattr(thing, "__module__", None) == value.__name__
        if is_local and not member.startswith("_") and callable(thing):
            names.append(f"{name}.{member}")
    return names


def resolve(name):
    """Return the object of a dotted name; a module wins over a function of the same name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise LookupError(f"there is no {name}")


def parameters(value):
    """Return the names of the parameters that a caller gives."""
    if getattr(value, "_is_protocol", False):
        return []
    if inspect.isclass(value) and issubclass(value, BaseException):
        return []
    names = list(inspect.signature(value).parameters)
    return [name for name in names if name not in ("self", "cls")]


NAMES = sorted(set(entries()))
CALLABLES = [name for name in NAMES if callable(resolve(name))]


def test_the_reference_lists_all_names_that_fedcohort_exports():
    from fedcohort import flower

    listed = {name.split(".")[-1] for name in NAMES}
    assert [name for name in fedcohort.__all__ if name not in listed] == []
    assert [name for name in flower.__all__ if name not in listed] == []


@pytest.mark.parametrize("name", CALLABLES)
def test_an_entry_that_takes_arguments_explains_each_of_them(name):
    value = resolve(name)
    unexplained = set(parameters(value)) - explained(value)
    assert unexplained == set()


def explained(value):
    """Return the names under `Args:` or `Attributes:`, and the fields that carry their own help."""
    text = inspect.getdoc(value) or ""
    names = set()
    for section in re.findall(r"^(?:Args|Attributes):\n((?:    .*\n|\n)+)", text + "\n", re.M):
        names |= set(re.findall(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:", section, re.MULTILINE))

    if dataclasses.is_dataclass(value):
        names |= {field.name for field in dataclasses.fields(value) if field.metadata.get("help")}
    return names


@pytest.mark.parametrize("name", CALLABLES)
def test_the_summary_of_an_entry_is_one_short_sentence(name):
    first, *rest = (inspect.getdoc(resolve(name)) or "").splitlines() or [""]
    assert first.endswith(".")
    assert len(first) <= 88
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("name", fedcohort.__all__)
def test_a_public_name_has_an_example_that_runs(name):
    value = getattr(fedcohort, name)
    if callable(value) and not getattr(value, "_is_protocol", False):
        assert ">>> " in (inspect.getdoc(value) or "")


def test_examples_stand_under_the_heading_that_the_reference_understands():
    """The Google style of the reference knows `Examples:`; `Example:` would lose its layout."""
    wrong = []
    for path in (ROOT / "src").rglob("*.py"):
        if re.search(r"^\s+Example:$", path.read_text(encoding="utf-8"), re.MULTILINE):
            wrong.append(path.name)
    assert wrong == []
