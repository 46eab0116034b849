"""What the verdicts and the page of a reproduction say, worked out by hand."""

from dataclasses import replace
from math import inf, log

import numpy as np
import pytest
from made import result

from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import Simulation, simulate
from fedcohort.paper.claims import training_checks as training
from fedcohort.paper.claims.claim import Check, decide, write_effect
from fedcohort.paper.claims.evidence import Evidence, our_evidence
from fedcohort.paper.claims.group import Group
from fedcohort.paper.claims.verdicts import count_verdicts, report_on
from fedcohort.paper.curves import sample_numbers, sample_rows
from fedcohort.paper.page import group_runs, make_findings
from fedcohort.paper.participation import SIMULATION
from fedcohort.paper.reproduce import Reproduction
from fedcohort.paper.results import Results
from fedcohort.paper.setting import task_config


def check(*values):
    return Check("x", dict(enumerate(values)), "accuracy")


def test_verdicts_are_counted():
    holds, fails = check(1.0, 1.0, 1.0), check(-1.0, -1.0, -1.0)
    unknown, absent = check(0.0, 0.0), check()
    decisions = decide([fails, holds, holds, unknown, absent, absent, absent])
    expected = {"hold": 2, "fail": 1, "cannot be told": 1, "not reached": 0, "not run": 3}
    assert count_verdicts(decisions) == expected
    assert set(count_verdicts([]).values()) == {0}


@pytest.mark.parametrize(
    ("size", "unit", "words"),
    [
        (log(2), "rounds", "2.00×"),
        (-0.015, "accuracy", "-1.50 points"),
        (0.25, "ratio", "+0.25"),
        (inf, "rounds", "-"),
    ],
)
def test_effects_are_written_in_their_unit(size, unit, words):
    assert write_effect(size, unit) == words


@pytest.mark.parametrize(
    ("partition", "mu", "cohort", "words"),
    [
        ("primary-label", 0.0, 20, "non-iid, FedAvg"),
        ("iid", 0.5, 10, "iid, FedProx, k=10"),
        ("iid", 0.25, 30, "iid, FedProx with mu 0.25, k=30"),
    ],
)
def test_a_group_of_runs_is_named_with_what_is_not_usual(partition, mu, cohort, words):
    assert str(Group("cifar10", partition, mu, cohort)) == words


def test_the_gap_between_slowest_and_fastest_is_paired_by_seed():
    rounds = {"pow-d": {0: 80.0, 1: 60.0, 2: 50.0}, "fedcs": {1: 20.0, 2: 10.0, 5: 1.0}}
    evidence = Evidence(
        lambda group, selector, *rest: rounds[selector], lambda *_: {}, {"cifar10": 100}
    )
    gap = training.lead_in_rounds(evidence, Group("cifar10", "iid", 0.0), "pow-d", "fedcs")
    assert gap == pytest.approx({1: log(3), 2: log(5)})


def test_the_numbers_of_a_verdict_are_those_worked_by_hand():
    values = {"e3cs-0": {0: 0.5, 1: 0.52, 2: 0.54}, "random": {0: 0.6, 1: 0.7, 2: 0.65}}

    def trained(group, selector, quantity):
        if quantity != "final" or group != Group(group.task, "iid", 0.0):
            return {}
        return values.get(selector, {})

    evidence = Evidence(trained, lambda *_: {}, {"cifar10": 100, "emnist-letters": 100})
    rows = [row for table in report_on(evidence).numbers.values() for row in table]
    lower = [row for row in rows if "random ends above e3cs-0," in row["comparison"]]
    assert lower
    for row in lower:
        if "non-iid" in row["comparison"] or "FedProx" in row["comparison"]:
            assert (row["worlds"], row["verdict"]) == (0, "not run")
        else:
            # Differences 0.1, 0.18 and 0.11: mean 0.13, variance 0.0019, so each run has 0.00095
            # and the mean an error of 0.0252; t is 5.17 with two degrees of freedom.
            assert row["support"] == pytest.approx(0.13)
            assert row["standard error"] == pytest.approx((0.0019 / 3) ** 0.5)
            assert (row["df"], row["in words"]) == (2, "+13.00 points")


def test_a_table_of_curves_reaches_to_the_end_of_the_longest():
    curves = {"random": np.linspace(0.1, 0.2, 10)[None], "fedcs": np.linspace(0.3, 0.5, 20)[None]}
    short, long = sample_rows(curves)
    assert list(long)[1:] == [str(round) for round in range(2, 21, 2)]
    assert long["20"] == "50.0"
    assert short["10"] == "20.0"
    rounds = {}
    for row in sample_numbers(curves):
        rounds.setdefault(row["scheme"], []).append(row["round"])
    assert rounds == {"random": [2, 4, 6, 8, 10], "fedcs": list(range(2, 21, 2))}


def test_runs_of_one_group_differ_in_scheme_and_seed_alone():
    runs = [
        result(accuracy=(0.1, 0.2), first_seed=1, valid=(5, 6)),
        result(accuracy=(0.3,), first_seed=0, rounds=2, valid=(7,)),
        result(accuracy=(0.4, 0.5), selectors=("fedcs",), first_seed=1),
        result(accuracy=(0.6, 0.7), mus=(0.5,), first_seed=1),
        result(accuracy=(0.6, 0.8), mus=(0.5,), first_seed=0, cohort=10),
    ]
    groups, targets = group_runs(runs)
    start = "cifar10, k=20, iid data, paper rule, mu"
    label, prox, ten = groups
    assert label.startswith(f"{start} 0, ")
    assert prox.startswith(f"{start} 0.5, ")
    assert ten.startswith("cifar10, k=10, iid data, paper rule, mu 0.5, ")
    assert targets == dict.fromkeys(groups, task_config("cifar10", {}).targets)
    assert list(groups[label]) == ["random", "fedcs"]
    scheme = groups[label]["random"]
    assert list(scheme.seeds) == [0, 1]
    np.testing.assert_array_equal(scheme.successes, [[7, np.nan], [5, 6]])
    np.testing.assert_array_equal(scheme.asked, [[20, np.nan], [20, 20]])
    np.testing.assert_allclose(scheme.accuracy, [[0.3, np.nan], [0.1, 0.2]], rtol=1e-6)


@pytest.fixture
def simulated(tmp_path):
    """Return results with one training run and a short simulation of its clients."""
    config = SimulationConfig(("random", "fedcs"), rounds=6, seeds=2, first_seed=4)
    results = Results(
        [result(accuracy=(0.1, 0.2), rounds=3, first_seed=8)],
        source=tmp_path,
    )
    played = Simulation(tmp_path / "figure4", {}, config, simulate(config))
    results.simulation = lambda spec, artefact="": played if spec is SIMULATION else None
    return results, played


def test_the_page_of_a_reproduction_has_simulated_schemes_beside_trained_ones(simulated):
    results, played = simulated
    findings = make_findings(Reproduction({}, results, {}))
    trained, selected = findings.kinds
    assert trained.startswith("cifar10, k=20, iid data")
    assert selected == "figure4: selection only"
    for name, scheme in findings.kinds[selected].items():
        assert scheme.counts.tolist() == played.results[name].counts.tolist()
    assert findings.lead == ["1 training runs are at hand, 1 of them not finished."]
    assert findings.seeds == "8"
    # Both have a hundred clients in the paper's four classes.
    assert findings.rates == (0.1, 0.3, 0.6, 0.9)
    assert findings.classes.tolist() == [0] * 25 + [1] * 25 + [2] * 25 + [3] * 25


def test_charts_by_class_need_the_same_clients_everywhere(simulated):
    results, _ = simulated
    results.runs = [*results.runs, result(accuracy=(0.1,), clients=60)]
    findings = make_findings(Reproduction({}, results, {}))
    assert findings.classes is None
    assert findings.rates == ()


def test_evidence_of_ours_has_what_was_simulated_and_what_was_trained(simulated, monkeypatch):
    results, played = simulated
    margins = {"case": [1.0, 2.0]}
    monkeypatch.setattr(
        "fedcohort.paper.claims.evidence.theorem.bound_margins",
        lambda given: margins if given is results else {},
    )
    results.runs = [result(task_config("cifar10", {}), np.linspace(0.1, 0.7, 2500), first_seed=3)]
    evidence = our_evidence(results, {})
    assert evidence.bound_margins == margins
    assert evidence.cohort == 20
    assert evidence.labels == {"selection": "selection, T=6"}
    assert evidence.classes.tolist() == [0] * 25 + [1] * 25 + [2] * 25 + [3] * 25
    assert evidence.trained(Group("cifar10", "iid", 0.0), "random", "final") == pytest.approx(
        {3: 0.7}
    )
    assert evidence.trained(Group("cifar10", "iid", 0.0, 10), "random", "final") == {}
    assert evidence.trained(Group("cifar10", "primary-label", 0.0), "random", "final") == {}
    shown = evidence.participation["fedcs"]
    assert shown.seeds == (4, 5)
    assert shown.successes.tolist() == played.results["fedcs"].successes.tolist()
    assert shown.counts.tolist() == played.results["fedcs"].counts.tolist()


def test_results_without_a_folder_have_no_simulations():
    assert Results([]).simulation(SIMULATION) is None
    assert Results([]).exported_summary(SIMULATION) == {}


def test_a_run_that_is_finished_is_no_unfinished_one(simulated):
    results, _ = simulated
    results = replace(results, runs=[result(accuracy=(0.1, 0.2))])
    results.simulation = lambda spec, artefact="": None
    findings = make_findings(Reproduction({}, results, {}))
    assert findings.lead == ["1 training runs are at hand."]
