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
