import sys

import pytest

from fedcohort.references import (
    as_file_name,
    check_name,
    expand_name,
    installed_names,
    is_reference,
    short_label,
    short_labels,
)

REGISTRY = {"random": 1, "age": 2}
BROKEN = "raise SystemExit('imported')"


@pytest.mark.parametrize(
    "name",
    ["mine.py:Oldest", "a b/../mine.py:x", "/tmp/x.py:y", "pkg:x", "a.b.c:d", "my-pkg:e-0.5"],
)
def test_a_place_and_a_name_with_a_colon_between_are_a_reference(name):
    assert is_reference(name)
    check_name("selector", name, REGISTRY)


@pytest.mark.parametrize(
    "name",
    [
        "mine.py",
        "mine.py:",
        ":x",
        ":",
        "mine.py:a-b",
        "mine.py:a.b",
        "a\nb.py:x",
        "\udcff.py:x",
        "a/b:x",
        "..a:x",
        "a..b:x",
        "a b:x",
        "a:x y",
    ],
)
def test_anything_else_with_a_colon_or_the_name_of_a_file_alone_is_refused(name):
    assert not is_reference(name)
    with pytest.raises(
        ValueError, match=r"^selector must be package\.module:name or file\.py:name"
    ):
        check_name("selector", name, REGISTRY)


@pytest.mark.parametrize(("name", "hint"), [("rnadom", "did you mean 'random'"), (5, "5")])
def test_an_unknown_name_gets_the_names_there_are(name, hint):
    with pytest.raises(ValueError, match=f"selector must be one of random, age, got .*{hint}"):
        check_name("selector", name, REGISTRY)


def test_a_name_of_an_installed_package_is_known_and_expanded_without_importing_it(install):
    install("my-pkg", "my_pkg", BROKEN, {"fedcohort.selectors": {"oldest": "my_pkg:Oldest"}})

    assert installed_names("selector") == {"oldest": ["my-pkg"]}
    assert installed_names("world") == {}
    check_name("selector", "oldest", REGISTRY)
    assert expand_name("selector", "oldest", REGISTRY) == "my-pkg:oldest"
    with pytest.raises(ValueError, match="must be one of"):
        check_name("world", "oldest", REGISTRY)
    with pytest.raises(
        ValueError, match=r"random, age, oldest, got 'oldst'; did you mean 'oldest'"
    ):
        check_name("selector", "oldst", REGISTRY)
    assert "my_pkg" not in sys.modules


def test_a_registered_name_takes_precedence_over_that_of_a_package(install):
    install("mine", "mine", BROKEN, {"fedcohort.selectors": {"random": "mine:Random"}})
    assert expand_name("selector", "random", REGISTRY) == "random"


def test_a_name_of_two_packages_must_say_which(install):
    for package in ("one", "two"):
        install(package, package, BROKEN, {"fedcohort.worlds": {"night": f"{package}:night"}})

    assert expand_name("world", "night", {}) == "night"
    message = "world must say from which package: (one|two):night or (one|two):night, got 'night'"
    with pytest.raises(ValueError, match=message):
        check_name("world", "night", {})
    check_name("world", "two:night", {})


def test_values_that_are_no_names_stay_as_they_are():
    for value in (5, None, ["random"], "nonsense", "mine.py:x"):
        assert expand_name("selector", value, REGISTRY) == value


def test_labels_are_short_where_they_can_be_and_differ_always():
    names = [
        "mine.py:random",
        "random",
        "a/mine.py:Oldest",
        "b/mine.py:Oldest",
        "pkg.mine:Oldest",
        "b/mine.py:Newest",
        "odd name.py:Twin",
        "my-pkg:Twin",
    ]
    labels = short_labels(names)
    assert labels["random"] == "random"
    assert labels["mine.py:random"] == "mine.random"
    assert labels["a/mine.py:Oldest"] == "mine.Oldest"
    assert labels["pkg.mine:Oldest"] == "pkg.mine.Oldest"
    assert labels["b/mine.py:Newest"] == "Newest"
    assert labels["odd name.py:Twin"] == "odd_name.Twin"
    assert len(set(labels.values())) == len(names)
    assert not any(set(label) & set("/: \\") for label in labels.values())


def test_labels_of_references_can_be_parts_of_file_names():
    names = ["up/../../mine.py:split", "c:\\odd\\mine.py:split", "my-pkg:a+b", "pkg.m:.."]
    for names_shown in (names, names[:1], names[1:2]):
        for label in short_labels(names_shown).values():
            assert not set(label) & set("/:\\ ")
    assert short_labels(["up/../../mine.py:split"]) == {"up/../../mine.py:split": "split"}


def test_anything_becomes_part_of_a_file_name():
    assert as_file_name("../a b:c\\d.py") == ".._a_b_c_d.py"
    assert as_file_name("e3cs-0.5+x_1") == "e3cs-0.5+x_1"


def test_registered_names_are_their_own_labels():
    assert short_labels(["e3cs-0.5", "random"]) == {"e3cs-0.5": "e3cs-0.5", "random": "random"}
    assert short_label("data/mine.npz") == "data/mine.npz"
