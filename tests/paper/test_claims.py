from math import inf, log

import numpy as np
import pytest

from fedcohort.paper.claims import selection, training
from fedcohort.paper.claims.claim import Check, compare, log_rounds
from fedcohort.paper.claims.evidence import Evidence, Participation, paper_evidence
from fedcohort.paper.claims.verdicts import CLAIMS, judge, report_on, weakest
from fedcohort.statistics import estimate, t95

CLAIM = {claim.name: claim for claim in CLAIMS}


def trained(**by_scheme):
    """Return evidence with these values by seed for each scheme, whatever is asked for."""
    named = {name.replace("_", "-"): dict(enumerate(values)) for name, values in by_scheme.items()}
    return Evidence(
        lambda task, selector, *rest: named.get(selector, {}),
        {"cifar10": 100, "emnist-letters": 100},
    )


def participation(successes, counts=((1, 1),)):
    return Participation(tuple(range(len(successes))), np.array(successes), np.array(counts))


@pytest.mark.parametrize(
    ("values", "noise", "verdict"),
    [
        ((1.0, 2.0, 3.0), 0.0, "holds"),  # mean 2, standard error 0.577, t 2.92: the limit is 1.69
        ((0.0, 2.0, 3.0), 0.0, "undecided"),  # mean 1.67, standard error 0.88: the limit is 2.58
        ((-1.0, -2.0, -3.0), 0.0, "fails"),
        ((1.0, 2.0), 0.0, "undecided"),  # two seeds, t 6.31, standard error 0.5: the limit is 3.16
        ((1.0, 1.1), 0.0, "holds"),
        ((0.5,), 0.4, "holds"),
        ((0.5,), 0.6, "undecided"),
        ((-0.5,), 0.4, "fails"),
        ((0.0, 0.0), 0.0, "undecided"),
        (
            (0.5, 0.5),
            0.6,
            "undecided",
        ),  # agreeing to the last digit, they say no more of the spread than one
        ((0.5, 0.5), 0.4, "holds"),
        ((), 0.0, "not run"),
    ],
)
def test_a_comparison_is_decided_beyond_the_limit_of_students_t(values, noise, verdict):
    assert Check("x", estimate(values), noise).verdict == verdict


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 6.314), (15, 1.753), (16, 1.746), (19, 1.729), (99, 1.660)]
)
def test_quantiles_of_students_t_are_those_of_the_printed_tables(degrees, quantile):
    assert t95(degrees) == pytest.approx(quantile, abs=0.001)


def test_what_speaks_most_against_is_judged_by_margins_whatever_the_unit():
    rounds = Check("rounds", estimate([0.2]), noise=0.3)  # two thirds of what would decide it
    accuracy = Check("accuracy", estimate([0.001]), noise=0.02)
    failing = Check("failing", estimate([-0.02, -0.021, -0.019]))
    absent = Check("absent", estimate([]))
    assert weakest([rounds, accuracy, absent]).description == "accuracy"
    assert weakest([rounds, accuracy, failing]).description == "failing"
    assert (
        weakest([Check("sure", estimate([1.0])), rounds]).description == "rounds"
    )  # without noise nothing is in doubt


def test_tasks_played_on_the_same_data_are_not_compared_with_each_other():
    rounds = {"cifar10": 100, "emnist-letters": 100}
    for datasets, count in (
        ({"cifar10": "digits", "emnist-letters": "digits"}, 0),
        ({task: task for task in rounds}, 4),
    ):
        evidence = Evidence(lambda *which: {0: 10.0}, rounds, datasets=datasets)
        assert len(list(training.wider_gap_on_cifar(evidence, "both tasks"))) == count


def test_values_are_paired_by_seed_and_seeds_of_one_alone_do_not_count():
    check = compare("x", {0: 3.0, 1: 5.0, 2: 9.0}, {1: 1.0, 2: 2.0, 7: 0.0}, noise=0.0, lead=1.0)
    assert (check.support.mean, check.support.runs) == (4.5, 2)  # 5 - 1 - 1 and 9 - 2 - 1


def test_never_counts_as_twice_the_rounds():
    assert log_rounds({0: 50.0, 1: inf}, 100) == {0: log(50), 1: log(200)}


def test_faster_and_better_compare_in_the_direction_of_their_names():
    evidence = trained(fedcs=(10.0, 11.0, 12.0), random=(20.0, 22.0, 24.0))
    assert training.faster(
        evidence, "cifar10", "fedcs", "random", "iid", 0.0
    ).support.mean == pytest.approx(log(2))
    assert training.faster(evidence, "cifar10", "random", "fedcs", "iid", 0.0).verdict == "fails"
    assert training.better(
        evidence, "cifar10", "random", "fedcs", "iid", 0.0
    ).support.mean == pytest.approx(11)


def test_a_claim_fails_with_one_comparison_and_holds_only_if_none_is_open():
    lowest = CLAIM["FedCS lowest"]
    schemes = {"e3cs_0.5": (0.7, 0.7), "random": (0.7, 0.7), "fedcs": (0.6, 0.6)}
    assert judge(lowest, "cifar10", trained(**schemes))[0] == "holds"  # of those run
    assert judge(lowest, "cifar10", trained(**schemes, **{"pow-d": (0.5, 0.5)}))[0] == "fails"
    assert judge(lowest, "cifar10", trained(**schemes, **{"pow-d": (0.5, 0.7)}))[0] == "undecided"
    assert judge(lowest, "cifar10", trained(random=(0.7,)))[0] == "not run"


@pytest.mark.parametrize(
    ("claim", "ground", "comparisons", "against"),
    [  # read in the paper's own tables
        ("FedCS fastest", "cifar10", 24, 0),
        ("FedCS lowest", "cifar10", 24, 0),
        (
            "E3CS-0 second lowest",
            "cifar10",
            20,
            1,
        ),  # non-iid, FedAvg: pow-d 60.54 below E3CS-0 61.0
        ("E3CS-0 second lowest", "emnist-letters", 20, 4),  # pow-d in three groups, Random in one
        ("wider gap in non-iid", "cifar10", 2, 0),
        (
            "wider gap on CIFAR-10",
            "both tasks",
            4,
            2,
        ),  # iid: 126/59 against 24/11, and 208/93 against 34/15
        ("pow-d slow", "cifar10", 4, 0),
    ],
)
def test_the_papers_own_tables_say_what_was_read_in_them(claim, ground, comparisons, against):
    signs = [
        check.support.mean > 0
        for check in CLAIM[claim].checks(paper_evidence(), ground)
        if check.support.runs
    ]
    assert (len(signs), signs.count(False)) == (comparisons, against)


def test_a_tie_in_the_papers_own_table_is_no_failure():
    nothing = Evidence(lambda *_: {}, {"cifar10": 2500, "emnist-letters": 400})
    rows = report_on(nothing).tables["Verdicts"]
    row = next(
        row for row in rows if (row["claim"], row["on"]) == ("E3CS at every k", "emnist-letters")
    )
    assert (
        row["paper's own table"] == "a tie in 1 of 12"
    )  # iid, FedAvg: 21 rounds for E3CS-0.8 and for Random


def test_the_turn_is_where_the_success_drops():
    before_and_after = np.r_[np.full(25, 18), np.full(75, 9)]
    drop, where = selection.turn_of_inc(
        Evidence(dict, {}, {"e3cs-inc": participation([before_and_after] * 3)}), "selection"
    )
    assert drop.support.mean == pytest.approx(9 / 20)
    assert where.support.mean == pytest.approx(100 / 50)
    assert {drop.verdict, where.verdict} == {"holds"}
    late = np.r_[np.full(50, 18), np.full(50, 9)]
    checks = selection.turn_of_inc(
        Evidence(dict, {}, {"e3cs-inc": participation([late] * 3)}), "selection"
    )
    assert [check.verdict for check in checks] == ["undecided", "fails"]


def test_orders_of_fairness_and_success_are_judged_neighbour_by_neighbour():
    evidence = Evidence(
        dict,
        {},
        {
            "random": participation([[10, 10]] * 2, [[5, 5]] * 2),
            "e3cs-0.5": participation([[12, 12]] * 2, [[4, 6]] * 2),
            "e3cs-0": participation([[16, 16]] * 2, [[1, 9]] * 2),
            "fedcs": participation([[15, 15]] * 2, [[0, 10]] * 2),
        },
    )
    fair = {
        check.description: check.verdict
        for check in selection.fairness_order(evidence, "selection")
    }
    assert (
        fair["fairness: e3cs-0.5 above e3cs-0"] == fair["fairness: e3cs-0 above fedcs"] == "holds"
    )
    assert fair["fairness: random above e3cs-0.8"] == "not run"
    won = {check.description: check for check in selection.success_order(evidence, "selection")}
    assert won["ratio: fedcs above e3cs-0"].support.mean == pytest.approx(-1 / 20)
    assert won["ratio: fedcs above e3cs-0"].verdict == "fails"


def test_dozens_and_the_best_class_are_counted_by_class():
    counts = [[10, 30, 500, 700]]  # classes 0, 0, 1, 1
    evidence = Evidence(
        dict,
        {},
        {"e3cs-0": participation([[1]], counts), "fedcs": participation([[1]], [[0, 0, 1200, 0]])},
        np.array([0, 0, 1, 1]),
    )
    (few,) = selection.rarely_wrong(evidence, "selection")
    assert few.support.mean == 100 - 20
    (fair,) = selection.fair_among_the_best(evidence, "selection")
    assert fair.support.mean == pytest.approx(1200**2 / (2 * (500**2 + 700**2)) - 0.5)


def test_e3cs_inc_becomes_random_after_the_turn():
    inc, plain = np.r_[np.full(25, 18), np.full(75, 9)], np.full(100, 9)
    evidence = Evidence(
        dict, {}, {"e3cs-inc": participation([inc] * 2), "random": participation([plain] * 2)}
    )
    (check,) = selection.inc_becomes_random(evidence, "selection")
    assert check.support.mean == pytest.approx(0.02)


def test_without_any_results_every_claim_is_not_run():
    report = report_on(trained())
    assert {row["verdict"] for row in report.tables["Verdicts"]} == {"not run"}
    assert {row["claim"] for row in report.tables["Sentences"]} == set(CLAIM)


def test_a_regret_above_the_bound_refutes_the_theorem():
    evidence = Evidence(
        dict, {}, bound_margins={"fine": [5.0, 6.0, 7.0], "switch": [-50.0, -60.0, -55.0]}
    )
    assert judge(CLAIM["regret bound"], "selection", evidence)[0] == "fails"
