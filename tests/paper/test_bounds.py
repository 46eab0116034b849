"""What results/claims.md says of bounds that we set is true of the records."""

from pathlib import Path

import pytest

from fedcohort.paper.claims import selection_checks, training_checks
from fedcohort.paper.claims.evidence import our_evidence
from fedcohort.paper.claims.verdicts import CLAIMS, judge
from fedcohort.paper.results import read_results

RESULTS = Path(__file__).parents[2] / "results"
ON_A_GPU = {"precision": "bf16", "device": "cuda"}
RECORDS = {
    "best-fitting": ON_A_GPU,
    "printed": ON_A_GPU | {"model": "cifar-cnn"},
    "chosen first": ON_A_GPU | {"model": "cifar-cnn-pool3"},
    "digits": {"dataset": "digits", "rounds": 800},
    "letters": {"dataset": "nist-letters-mix"},
}
# The bounds by the constant that holds them, and the claims that rest on them.
BOUNDS = [
    (training_checks, "MINOR", "cifar10"),
    (selection_checks, "DOZENS", "selection"),
    (selection_checks, "NOT_A_LOT", "selection"),
    (selection_checks, "NEAR_TURN", "selection"),
]


@pytest.fixture(scope="module")
def evidence():
    """Evidence by data set and network."""
    found = {}
    for name, overrides in RECORDS.items():
        found[name] = our_evidence(read_results(RESULTS, overrides), overrides)
    return found


def verdicts(evidence, ground):
    """Return the verdict on each claim on this ground."""
    if ground != "selection" and evidence.datasets["cifar10"] == "nist-letters-mix":
        ground = "emnist-letters"
    on_ground = [claim for claim in CLAIMS if ground in claim.grounds]
    return {claim.name: judge(claim, ground, evidence)[0] for claim in on_ground}


def changed_verdicts(before, evidence, ground):
    """Return the verdicts that are not as before, by claim."""
    after = verdicts(evidence, ground)
    return {name: after[name] for name in before if after[name] != before[name]}


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2])
@pytest.mark.parametrize(("module", "name", "ground"), BOUNDS)
def test_half_or_double_a_bound_of_ours_changes_what_the_page_names(
    evidence, monkeypatch, module, name, ground, factor
):
    of_these = RECORDS if ground == "cifar10" else ["best-fitting"]
    before = {records: verdicts(evidence[records], ground) for records in of_these}
    monkeypatch.setattr(module, name, factor * getattr(module, name))
    changed = {}
    for records in of_these:
        changed |= changed_verdicts(before[records], evidence[records], ground)
    expected = {
        ("DOZENS", 0.5): {"dozens of wrong choices, per client": "fails"},
        ("NOT_A_LOT", 0.5): {"CEP hardly sacrificed": "cannot be told"},
    }
    assert changed == expected.get((name, factor), {})


def test_a_client_of_the_third_class_is_asked_more_often_than_dozens_of_times(evidence):
    of_all = evidence["best-fitting"]
    counts = of_all.participation["e3cs-0"].counts
    by_class = [counts[:, of_all.classes == number].mean() for number in range(4)]
    assert by_class[0] < by_class[1] < selection_checks.DOZENS
    assert round(by_class[2], -2) == 200
