import hashlib
import pickle
import sys

import pytest

from fedcohort.references import (
    call_own,
    describe_own_error,
    make_own,
    resolve,
    source_digest,
)
from fedcohort.selection.base import BaseSelector

REGISTRY = {"random": "the registered one"}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Return a function that writes mine.py in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(source, name="mine.py"):
        (tmp_path / name).write_text(source)

    return write


def refusal(name, kind="selector"):
    with pytest.raises(ValueError, match=" must ") as refused:
        resolve(kind, name, REGISTRY)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_a_registered_name_is_looked_up_and_nothing_is_imported(mine):
    mine("raise SystemExit", "random.py")
    assert resolve("selector", "random", REGISTRY) == "the registered one"


def test_a_file_is_loaded_once_and_again_when_it_has_changed(mine):
    path = list(sys.path)
    mine("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: 'int' = 1\n")
    first = resolve("selector", "mine.py:A", REGISTRY)
    assert first is resolve("selector", "./mine.py:A", REGISTRY)
    assert pickle.loads(pickle.dumps(first())) == first()

    mine("A = 2")
    assert resolve("selector", "mine.py:A", REGISTRY) == 2
    assert sys.path == path
    assert "mine" not in sys.modules


def test_two_files_of_one_name_are_two_modules(mine, tmp_path):
    (tmp_path / "below").mkdir()
    mine("def a(): return 1")
    mine("def a(): return 2", "below/mine.py")
    assert resolve("world", "mine.py:a", {})() == 1
    assert resolve("world", "below/mine.py:a", {})() == 2


def test_a_module_is_imported(install):
    install("nothing", "own_module", "value = 3", {})
    assert resolve("model", "own_module:value", {}) == 3
    assert resolve("model", "collections.abc:Mapping", {}).__name__ == "Mapping"


def test_a_package_gives_what_it_registers_by_its_short_and_its_long_name(install):
    source = "class A:\n    inner = 4\n"
    install("my-pkg", "own_plugin", source, {"fedcohort.worlds": {"four": "own_plugin:A.inner"}})
    assert resolve("world", "four", {}) == 4
    assert resolve("world", "my-pkg:four", {}) == 4
    assert "my-pkg:four" in refusal("my-pkg:four", kind="model")  # registered as a world only


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("", "none.py:A", "must be in a file that is there, got no file none.py"),
        ("Oldest = 1", "mine.py:Oldst", "got no 'Oldst' there; did you mean 'Oldest'?"),
        ("_a = 1", "mine.py:Zebra", "must be a name in mine.py, got no 'Zebra' there"),
        ("\n1 / 0", "mine.py:A", "got ZeroDivisionError: division by zero in line 2 of mine.py"),
        ("\ndef (:", "mine.py:A", "got SyntaxError: invalid syntax in line 2 of mine.py"),
        ("import none_such", "mine.py:A", "No module named 'none_such' in line 1 of mine.py"),
        ("exit(3)", "mine.py:A", "got SystemExit: 3 in line 1 of mine.py"),
        ("raise OSError", "mine.py:A", "got OSError in line 1 of mine.py"),
        ("raise OSError('a\\nb')", "mine.py:A", "got OSError: a b in line 1 of mine.py"),
        (
            "def __getattr__(name):\n    raise KeyError(name)",
            "mine.py:A",
            "must be a name in mine.py, got KeyError: 'A' in line 2 of mine.py",
        ),
        (
            "class Mute(Exception):\n    def __str__(self):\n        return 1 / 0\nraise Mute",
            "mine.py:A",
            "got Mute in line 4 of mine.py",
        ),
        ("", "a" * 300 + ".py:A", "must be in a file that can be read, got: "),
        ("import json\n\njson.loads('?')", "mine.py:A", "in line 3 of mine.py"),
        ("\0", "mine.py:A", "mine.py:A' must be in a module that can be imported, got "),
        ("", "no.such:A", "must be in a module that is installed, got no 'no.such'"),
        ("", "mine:A", "got no 'mine'; did you mean mine.py?"),
        ("", "collections.abc:Maping", "did you mean 'Mapping'"),
        ("", "collections.none:A", "got no 'collections.none'"),
    ],
)
def test_a_mistake_gets_one_line_that_says_where_it_is(mine, source, name, words):
    mine(source)
    message = refusal(name)
    assert message.startswith(f"selector {name!r} must be ")
    assert words in message


def test_a_file_that_cannot_be_imported_leaves_no_module_behind(mine):
    mine("raise ValueError")
    before = set(sys.modules)
    refusal("mine.py:A")
    assert {name for name in set(sys.modules) - before if "own" in name} == set()


def test_a_broken_package_is_named(install):
    path = install(
        "my-pkg", "own_broken", "x = 1\nx.y", {"fedcohort.selectors": {"a": "own_broken:A"}}
    )
    message = refusal("a")
    assert "selector 'my-pkg:a' of the package my-pkg must be in a module that can be" in message
    assert f"got AttributeError: 'int' object has no attribute 'y' in line 2 of {path}" in message


def test_a_package_that_registers_what_it_does_not_have_is_named(install):
    install("my-pkg", "own_empty", "", {"fedcohort.selectors": {"a": "own_empty:A"}})
    assert "of the package my-pkg must be a name in own_empty, got no 'A'" in refusal("a")


def test_the_digest_is_that_of_the_file_which_is_not_run(mine, install):
    path = install("my-pkg", "own_digest", "exit()", {"fedcohort.models": {"a": "own_digest:A"}})
    mine("exit()  # mine")
    of_file = hashlib.sha256(b"exit()  # mine").hexdigest()
    of_module = hashlib.sha256(path.read_bytes()).hexdigest()

    assert source_digest("model", "mine.py:A") == of_file
    assert source_digest("model", "own_digest:A") == of_module
    assert source_digest("model", "my-pkg:a") == of_module


@pytest.mark.parametrize("name", ["none.py:A", "no.such:A", "no_such:A", "sys:path"])
def test_a_source_that_is_not_there_has_no_digest(mine, name):
    with pytest.raises(ValueError, match=f"^selector '{name}' must be in a .*, got "):
        source_digest("selector", name)


def test_an_error_in_a_users_function_names_his_line_and_not_the_librarys(mine):
    mine("import json\ndef make(text):\n    return json.loads(text)\n")
    make = resolve("dataset", "mine.py:make", {})
    with pytest.raises(
        ValueError, match=r"^it must be .* got JSONDecodeError: .* in line 3 of mine"
    ):
        call_own("it", make, "?")
    with pytest.raises(ValueError, match=r"got TypeError: make\(\) missing 1 required"):
        call_own("it", make)
    with pytest.raises(ValueError, match=r"^it must be made without an error, got SystemExit: 3$"):
        call_own("it", sys.exit, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [(5, "must be a function or a class, got 5"), (lambda: "x", "must return a int, got 'x'")],
)
def test_what_a_users_function_makes_must_be_of_the_right_kind(make, words):
    with pytest.raises(ValueError, match=words):
        make_own("it", make, int)
    assert make_own("it", lambda x: x, int, 3) == 3


def error_of(call, *arguments):
    """Return the error that a call raises."""
    with pytest.raises((NotImplementedError, TypeError)) as caught:
        call(*arguments)
    return caught.value


def test_a_part_that_lacks_a_method_or_an_argument_of_it_is_named_in_one_line(mine):
    source = "from fedcohort import BaseSelector\nclass Bare(BaseSelector): pass\n"
    source += "class Short(BaseSelector):\n    def choose(self, round): pass\n"
    mine(source)
    bare = resolve("selector", "mine.py:Bare", {})(3, 1, rng=0)
    short = resolve("selector", "mine.py:Short", {})(3, 1, rng=0)
    said = describe_own_error(error_of(bare.select, 0))
    assert said == "Bare of mine.py cannot be used: Bare must implement choose"
    said = describe_own_error(error_of(short.select, 0))
    assert said.startswith("Short of mine.py cannot be used: ")
    assert said.endswith("choose() takes 2 positional arguments but 4 were given")


def test_a_part_of_ours_that_lacks_a_method_is_no_mistake_of_the_user(mine):
    assert describe_own_error(error_of(BaseSelector(3, 1, rng=0).select, 0)) is None
    assert describe_own_error(TypeError("never raised")) is None
