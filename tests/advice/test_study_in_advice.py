"""What advice says of our study is what the study's rows show."""

import sys
from pathlib import Path

import pytest

from fedcohort.advice.rules import FOUND, MEMORY_STUDY, STUDY
from fedcohort.advice.selector_text import SELECTION_STUDY
from fedcohort.study import runs
from fedcohort.study.analysis import compare_with
from fedcohort.study.tables import by_place, values_by_combination
from fedcohort.study.volatility import BASELINE

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import study_facts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def differences():
    """Differences from the baseline by place and combination."""
    places = by_place(runs.read_measures(ROOT / "results" / "study"))
    found = {}
    for place, rows in places.items():
        found[place] = compare_with(BASELINE, values_by_combination(rows, "final"))
    return found


def test_advice_quotes_the_numbers_of_the_study():
    assert study_facts.ADVICE.read_text(encoding="utf-8") == study_facts.advice_text()


def test_advice_says_in_words_what_the_study_shows(differences):
    assert f"in any of {len(differences)} cases" in SELECTION_STUDY
    assert f"in all {len(differences)} cases" in STUDY
    for own in differences.values():
        assert own["random", "paper"].mean < 0
        for (selector, rule), one in own.items():
            is_ahead = one.holds and one.mean > 0
            assert not (is_ahead and rule == "normalised")  # "no selector was ahead"
            assert not (is_ahead and selector == "random")  # "no rule was ahead"
            if selector == "random" and rule in ("mifa", "fedvarp"):
                assert not one.holds  # "for certain in no single case"


def test_counts_of_cases_are_counted_anew(differences):
    for name in ("fedcs", "oort"):
        own = [found[name, "normalised"] for found in differences.values()]
        behind = sum(one.holds and one.mean < 0 for one in own)
        assert FOUND[f"{name}-behind"] == str(behind)
    memory = []
    for place, own in differences.items():
        if place[2] == "primary-label":
            memory += [own["random", rule].mean for rule in ("mifa", "fedvarp")]
    assert f"{100 * min(memory):+.1f} to {100 * max(memory):+.1f} points" in MEMORY_STUDY
