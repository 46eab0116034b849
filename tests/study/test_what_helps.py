"""The sentences of results/what-helps.md are true of the study's rows, and rows are merged."""

import shutil
import sys
from pathlib import Path

import pytest

from fedcohort.study import runs
from fedcohort.study.analysis import compare_rules, compare_with
from fedcohort.study.tables import by_place, values_by_combination
from fedcohort.study.volatility import BASELINE

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import study_facts

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "results" / "study"
LASTING = ("markov", "primary-label")


@pytest.fixture(scope="module")
def finals():
    """Final accuracies by place and combination."""
    places = by_place(runs.read_measures(STUDY))
    return {place: values_by_combination(rows, "final") for place, rows in places.items()}


@pytest.fixture(scope="module")
def found(finals):
    """Differences from the baseline by place and combination."""
    return {place: compare_with(BASELINE, values) for place, values in finals.items()}


def test_the_papers_rule_is_below_the_baseline_in_all_cases(found):
    assert all(own["random", "paper"].mean < 0 for own in found.values())


def test_no_selector_is_ahead_for_certain_and_e3cs_is_never_behind(found):
    for own in found.values():
        for (selector, rule), one in own.items():
            if rule == "normalised":
                assert not (one.holds and one.mean > 0)
                assert not (one.holds and selector in ("e3cs-0.5", "e3cs-inc"))


def test_age_loses_on_all_non_iid_data_where_failures_last(found):
    lasting = {place[0]: own for place, own in found.items() if place[1:] == LASTING}
    assert len(lasting) == 3
    for dataset, own in lasting.items():
        assert own["age", "normalised"].mean < 0
        assert own["age", "normalised"].holds == (dataset != "digits")
        assert own["age", "fedvarp"].holds
        assert own["age", "fedvarp"].mean < 0


def test_memory_with_uniform_selection_is_certain_nowhere_and_both_above_and_below(found):
    signs = set()
    for place, own in found.items():
        for rule in ("mifa", "fedvarp"):
            assert not own["random", rule].holds
            if place[2] == "primary-label":
                signs.add(own["random", rule].mean > 0)
    assert signs == {True, False}


def test_mifa_over_all_selectors_is_ahead_on_fashion_and_behind_on_cifar(finals):
    signs = {"fashion-mnist": set(), "cifar10": set()}
    for (dataset, _, partition), values in finals.items():
        if partition == "primary-label" and dataset in signs:
            difference = compare_rules("normalised", values)["mifa"]
            signs[dataset].add(difference.mean > 0)
    assert signs == {"fashion-mnist": {True}, "cifar10": {False}}


RULES_OF_DATASETS = [
    (rule, dataset)
    for rule in ("paper", "inverse-normalised", "fedau", "mifa", "fedvarp")
    for dataset in ("fashion-mnist", "cifar10", "digits")
]


@pytest.mark.parametrize(("rule", "dataset"), RULES_OF_DATASETS)
def test_rules_with_a_spread_of_their_own_are_as_certain_as_in_the_table(finals, rule, dataset):
    certain = 0
    for place, values in finals.items():
        if place[0] == dataset and place[2] == "primary-label":
            certain += compare_rules("normalised", values)[rule].holds
    assert study_facts.certain_with_pool(finals, rule, dataset, "own") == certain


@pytest.mark.parametrize("dataset", ["fashion-mnist", "cifar10"])
def test_the_spread_that_is_shown_calls_the_fewest_cases_of_mifa_certain(finals, dataset):
    shown = study_facts.certain_with_pool(finals, "mifa", dataset, "own")
    for pooling in ("worlds", "rules"):
        assert shown < study_facts.certain_with_pool(finals, "mifa", dataset, pooling)


def values_with(**differences):
    """Return values of two seeds in which rules differ from the baseline's by these."""
    values = {("random", "normalised"): (5.0, 5.0)}
    for rule, (first, second) in differences.items():
        values["random", rule] = (5.0 + first, 5.0 + second)
    return values


@pytest.mark.parametrize(
    ("other", "own", "pooled"), [((1.0, 3.0), 1, 0), ((1.8, 2.2), 1, 2)], ids=["wide", "narrow"]
)
def test_a_pooled_spread_is_the_mean_variance_with_all_degrees_of_freedom(other, own, pooled):
    """All differences are 2 in the mean, one of 1.9 and 2.1: variance 0.02, error 0.1, t = 20.

    With one degree of freedom t must be above 12.7, with two above 4.3. Beside 1 and 3 (variance
    2, t = 2) the pooled t is 2.8; beside 1.8 and 2.2 (variance 0.08, t = 10) it is 12.6.
    """
    finals = {
        ("digits", "a", "primary-label"): values_with(mifa=(1.9, 2.1)),
        ("digits", "b", "primary-label"): values_with(mifa=other),
        ("digits", "b", "iid"): values_with(mifa=(0.0, 90.0)),
    }
    assert study_facts.certain_with_pool(finals, "mifa", "digits", "own") == own
    assert study_facts.certain_with_pool(finals, "mifa", "digits", "worlds") == pooled


def test_a_spread_is_pooled_over_the_rules_of_a_world():
    """Alone t = 10 is not above 12.7; pooled it is 12.6, above 4.3 and Holm's limit of 6.2."""
    values = values_with(mifa=(1.8, 2.2), fedau=(1.9, 2.1))
    finals = {("digits", "a", "primary-label"): values}
    assert study_facts.certain_with_pool(finals, "mifa", "digits", "own") == 0
    assert study_facts.certain_with_pool(finals, "mifa", "digits", "rules") == 1


def test_fedcs_decides_that_fedvarp_is_lower_on_images(finals):
    for dataset in ("cifar10", "fashion-mnist"):
        lower = []
        lower_without = []
        for (name, _, partition), values in finals.items():
            if name == dataset and partition == "primary-label":
                others = study_facts.without_selector(values, "fedcs")
                lower.append(compare_rules("normalised", values)["fedvarp"].mean < 0)
                lower_without.append(compare_rules("normalised", others)["fedvarp"].mean < 0)
        assert sum(lower) > len(lower) / 2 > sum(lower_without)


def test_rows_of_another_folder_replace_those_of_the_same_cases(tmp_path, monkeypatch):
    study = tmp_path / "study"
    other = tmp_path / "other"
    for folder in (study, other):
        folder.mkdir()
        for name in (runs.MEASURES, runs.CURVES):
            shutil.copy(STUDY / name, folder / name)
    monkeypatch.setattr(study_facts, "STUDY", study)

    lines = (other / runs.MEASURES).read_text().splitlines(keepends=True)
    head, rows = lines[0], lines[1:]
    case = [row for row in rows if row.startswith("digits,groups,iid,")]
    new = [row.replace("digits,groups,iid,", "digits,groups,primary-label,") for row in case]
    (other / runs.MEASURES).write_text(head + "".join(new))
    study_facts.merge(other)

    kept = [row for row in rows if not row.startswith("digits,groups,primary-label,")]
    (other / runs.MEASURES).write_text(head + "".join([*kept, *new]))
    assert list(map(str, runs.read_measures(study))) == list(map(str, runs.read_measures(other)))
    assert list(map(str, runs.read_curves(study))) == list(map(str, runs.read_curves(STUDY)))
