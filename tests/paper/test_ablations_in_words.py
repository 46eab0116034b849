"""What results/other-data.md says of single differences on digits is true of the records."""

import math
from pathlib import Path

import numpy as np
import pytest
import recompute
import recompute_claims

RESULTS = Path(__file__).parents[2] / "results"
SAMPLING = [("e3cs-0", "e3cs-0"), ("e3cs-0.5",) * 2, ("e3cs-0.8",) * 2, ("e3cs-inc",) * 2]
ROBUST = [("e3cs-robust", "e3cs-0")]


def finals(selector, partition, sampler="successive", candidates=None):
    """Return final accuracies under FedAvg by seed, in points."""
    found = {}
    for row in recompute.read_runs(RESULTS / "runs-digits.parquet"):
        settings = row["settings"]
        wanted = (settings["sampler"], settings["candidates"]) == (sampler, candidates)
        usual = (row["mu"], row["cohort"], row["aggregation"]) == (0.0, 20, "paper")
        dealt = settings["refill"] or partition == "iid"
        is_of = (row["selector"], row["partition"]) == (selector, partition)
        if wanted and usual and dealt and is_of and settings["server_rate"] == 1:
            found[row["seed"]] = 100 * recompute.value(row, "final")
    assert sorted(found) == list(range(10))
    return np.array([found[seed] for seed in range(10)])


def paired_p(differences):
    """Return the two-sided p-value of Student's t of paired differences."""
    error = differences.std(ddof=1) / math.sqrt(differences.size)
    return recompute_claims.student(float(differences.mean() / error), differences.size - 1)


@pytest.fixture(scope="module")
def of_candidates():
    """Differences of pow-d with other numbers of candidates, by number and partition."""
    found = {}
    for partition in ("iid", "primary-label"):
        first = finals("pow-d", partition)
        for candidates in (30, 70):
            other = finals("pow-d", partition, candidates=candidates)
            found[candidates, partition] = other - first
    return found


@pytest.fixture(scope="module")
def of_samplers():
    """Differences of exact sampling, and of the robust update, to the paper's."""
    found = {}
    for partition in ("iid", "primary-label"):
        for selector, first in SAMPLING + ROBUST:
            exact = finals(selector, partition, sampler="systematic")
            found[selector, partition] = exact - finals(first, partition)
    return found


def test_other_numbers_of_candidates_differ_by_nothing_significant(of_candidates):
    # The first of Holm's steps: the smallest p-value times their number.
    smallest = min(map(paired_p, of_candidates.values()))
    assert len(of_candidates) == 4
    assert 4 * smallest > 0.05


def test_exact_sampling_and_the_robust_update_differ_by_nothing_significant(of_samplers):
    smallest = min(map(paired_p, of_samplers.values()))
    assert len(of_samplers) == 10
    assert 10 * smallest > 0.05


def test_the_differences_are_those_of_the_report(of_candidates, of_samplers):
    text = (RESULTS / "digits/mlp/ablations/ablations.md").read_text(encoding="utf-8")
    for differences in (*of_candidates.values(), *of_samplers.values()):
        error = differences.std(ddof=1) / math.sqrt(differences.size)
        assert f"| {differences.mean():+.2f} ± {error:.2f} |" in text


def loss_differences(selector, partition):
    """Return the loss of the class that fails most less that of the one that fails least."""
    found = {}
    for row in recompute.read_runs(RESULTS / "runs-digits.parquet"):
        settings = row["settings"]
        usual = (row["mu"], row["cohort"], settings["sampler"]) == (0.0, 20, "successive")
        dealt = settings["refill"] or partition == "iid"
        is_of = (row["selector"], row["partition"]) == (selector, partition)
        papers = row["aggregation"] == "paper" and settings["candidates"] is None
        if usual and dealt and is_of and papers and row["class_loss"] is not None:
            found[row["seed"]] = row["class_loss"][0] - row["class_loss"][-1]
    assert sorted(found) == list(range(10))
    return np.array([found[seed] for seed in range(10)])


def test_fedavg_alone_shows_higher_losses_under_two_more_schemes():
    schemes = ("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random", "pow-d")
    p_values = {}
    for partition in ("iid", "primary-label"):
        for selector in schemes:
            differences = loss_differences(selector, partition)
            assert differences.mean() > 0
            p_values[selector, partition] = paired_p(differences)

    significant = set()
    for step, key in enumerate(sorted(p_values, key=p_values.get)):  # Holm's steps
        if (len(p_values) - step) * p_values[key] >= 0.05:
            break
        significant.add(key)
    iid = {selector for selector, partition in significant if partition == "iid"}
    assert iid == {"fedcs", "e3cs-0", "e3cs-0.5", "e3cs-inc", "e3cs-0.8"}
    assert len(significant) == len(iid) + len(schemes)  # and under all of them on non-iid data
