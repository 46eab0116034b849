import re
from pathlib import Path

import pytest

from fedcohort.selection.random import Random
from fedcohort.selection.registry import (
    PAPER_SELECTORS,
    SELECTORS,
    Federation,
    Scheme,
    make_selector,
)

ROOT = Path(__file__).parents[2]
UNIFORM = ("random", "over-selection")  # one probability for all, which needs no allocation


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("e3cs-05", "e3cs-0.5"),
        ("FedCs", "fedcs"),
        ("rand", "random"),
        ("powd", "pow-d"),
        ("e3cs_inc", "e3cs-inc"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong, near, build):
    with pytest.raises(
        ValueError, match=rf"selector must be one of .*, got '{wrong}'; did you mean '{near}'\?"
    ):
        build(wrong)


def test_a_name_like_no_other_is_answered_without_a_guess(build):
    with pytest.raises(ValueError, match=r"selector must be one of .*, got 'zzz'$"):
        build("zzz")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("fedcs", "success_rates"),
        ("pow-d", "loss_of"),
        ("e3cs-inc", "horizon"),
        ("e3cs-linear", "horizon"),
        ("e3cs-cosine", "horizon"),
    ],
)
def test_what_a_selector_must_know_is_asked_for(name, what):
    with pytest.raises(ValueError, match=rf"{what} must be given for {name}, got None"):
        make_selector(name, Federation(12, 4, 0))


def test_the_papers_selectors_are_registered():
    assert set(PAPER_SELECTORS) < set(SELECTORS)


@pytest.mark.parametrize("name", SELECTORS)
def test_a_scheme_makes_selectors_of_the_class_it_names(name, build):
    assert type(build(name)) is SELECTORS[name].selector


def test_capabilities_are_those_of_the_classes():
    capabilities = (
        "needs_losses",
        "needs_seconds",
        "needs_norms",
        "needs_data_sizes",
        "needs_deadline",
        "probes_losses",
        "has_inclusion",
    )
    declared = {}
    for capability in capabilities:
        have = {name for name, scheme in SELECTORS.items() if getattr(scheme.selector, capability)}
        declared[capability] = have
    e3cs = {name for name in SELECTORS if name.startswith("e3cs")}
    assert declared == {
        "needs_losses": {"rpow-d", "oort"},
        "needs_seconds": {"oort", "cs-ucb", "cs-ucb-q", "rbcs-f", "fedcs-time"},
        "needs_norms": {"optimal"},
        "needs_data_sizes": {"f3ast", "oort", "optimal", "clustered"},
        "needs_deadline": {"cs-ucb", "cs-ucb-q", "rbcs-f", "fedcs-time"},
        "probes_losses": {"pow-d"},
        "has_inclusion": {*e3cs, "age", "oort", "optimal", "clustered"},
    }


def test_the_table_of_selectors_names_them_all_and_what_they_must_know():
    page = (ROOT / "docs/how-to/selector.md").read_text()
    words = {
        "needs_losses": "losses",
        "probes_losses": "losses on request",
        "needs_seconds": "seconds",
        "needs_norms": "lengths of updates",
        "needs_data_sizes": "data sizes",
        "needs_deadline": "deadline",
    }
    listed = []
    for line in page.splitlines():
        if not line.startswith("| `"):
            continue
        cells = line.strip("| ").split(" | ")
        names = [name for name in re.findall(r"`([^`]+)`", cells[0]) if name in SELECTORS]
        listed += names
        for name in names:
            for capability, word in words.items():
                if getattr(SELECTORS[name].selector, capability):
                    assert word in cells[2]
            is_exact = SELECTORS[name].selector.has_inclusion or name in UNIFORM
            assert cells[3].startswith("yes") == is_exact
    assert sorted(listed) == sorted(SELECTORS)


def test_a_scheme_without_a_maker_calls_its_class_with_the_sizes_and_the_randomness():
    selector = Scheme(Random)(Federation(12, 4, [0, 1]))
    assert (selector.num_clients, selector.cohort_size, selector.batch) == (12, 4, (2,))


@pytest.mark.parametrize("name", ["e3cs-inc", "e3cs-inc-robust"])
def test_the_growing_quota_switches_after_a_quarter_of_the_rounds_and_not_later(name, build):
    # The paper's T/4 of 2,500 rounds is round 625, counted from 0; 27 // 4 is 6.
    paper = build(name, horizon=2500)
    assert [paper.fraction(round) for round in (0, 624, 625, 2499)] == [0.0, 0.0, 1.0, 1.0]
    short = build(name, horizon=27)
    assert [short.fraction(round) for round in (5, 6)] == [0.0, 1.0]
