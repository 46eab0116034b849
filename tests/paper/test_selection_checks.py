"""The comparisons of the claims about who is asked, each worked by hand, world by world."""

import numpy as np
import pytest
from made_evidence import participation, selection_evidence

from fedcohort import Outcome
from fedcohort.paper.claims import selection_checks as selection
from fedcohort.paper.claims.claim import decide
from fedcohort.selection.registry import Federation, make_selector

ON = "selection"
COHORT = 8  # not the 20 of the paper, so that a share of 20 is found


def in_rounds(*steps):
    """Return updates by round from pairs of a number of updates and a number of rounds."""
    updates, rounds = zip(*steps, strict=True)
    return np.repeat(updates, rounds)


def supports(checks):
    """Return the supports of comparisons by description."""
    return {check.description: check.supports for check in checks}


def test_wrong_choices_are_those_of_all_classes_but_the_best():
    # Clients of classes 0, 1, 2, 2. World 9: 10 + 30 wrong ones, world 4: 0 + 50, of two clients.
    counts = [(10, 30, 500, 700), (0, 50, 1, 2)]
    schemes = {"e3cs-0": participation([[1], [1]], counts, seeds=(9, 4))}
    evidence = selection_evidence(schemes, classes=np.array([0, 1, 2, 2]))
    (in_all,) = selection.wrong_in_total(evidence, ON)
    assert in_all.supports == {9: 100 - 40, 4: 100 - 50}
    (each,) = selection.wrong_per_client(evidence, ON)
    assert each.supports == {9: 100 - 20, 4: 100 - 25}


def test_the_best_class_is_compared_with_the_next_most_asked_in_each_world():
    # Mean times asked by class: 10, 40, 100 in world 4, so 60 ahead; 50, 20, 30 in world 9, so 20
    # behind. pow-d should not ask the best class most.
    counts = [(5, 15, 30, 50, 90, 110), (45, 55, 20, 20, 20, 40)]
    scheme = participation([[1], [1]], counts, seeds=(4, 9))
    names = ("e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "pow-d", "random")
    evidence = selection_evidence(
        dict.fromkeys(names, scheme), classes=np.array([0, 0, 1, 1, 2, 2])
    )
    ahead = {4: 60, 9: -20}
    assert supports(selection.best_class_asked_most(evidence, ON)) == {
        "e3cs-0.5 asks the best class most": ahead,
        "e3cs-0.8 asks the best class most": ahead,
        "e3cs-inc asks the best class most": ahead,
        "fedcs asks the best class most": ahead,
        "pow-d does not ask the best class most": {4: -60, 9: 20},
    }


def test_what_is_sacrificed_is_a_share_of_fedcss_updates_in_the_worlds_of_both():
    # World 1: 6 of 8; world 2: 7 of 7. Worlds 0 and 3 have one scheme alone.
    schemes = {
        "e3cs-0": participation([[1, 1], [5, 7], [7, 7]], seeds=(0, 1, 2)),
        "fedcs": participation([[8, 8], [6, 8], [8, 8]], seeds=(1, 2, 3)),
    }
    evidence = selection_evidence(schemes, cohort=COHORT)
    (share,) = selection.little_is_sacrificed(evidence, ON)
    assert share.supports == pytest.approx({1: 6 / 8 - 0.9, 2: 7 / 7 - 0.9})


@pytest.mark.parametrize(
    ("checks", "needed"),
    [
        (selection.wrong_in_total, ("e3cs-0",)),
        (selection.wrong_per_client, ("e3cs-0",)),
        (selection.little_is_sacrificed, ("e3cs-0", "fedcs")),
        (selection.fair_among_the_best, ("e3cs-0", "fedcs")),
        (selection.powd_is_low_throughout, ("random", "pow-d")),
        (selection.turn_of_inc, ("e3cs-inc",)),
    ],
)
def test_without_one_of_its_schemes_a_claim_has_no_comparison(checks, needed):
    scheme = participation([[1] * 100] * 2, [(1, 3), (1, 5)])
    every = dict.fromkeys(("e3cs-0", "e3cs-0.5", "e3cs-inc", "fedcs", "random", "pow-d"), scheme)
    classes = np.array([0, 1])
    assert list(checks(selection_evidence(every, classes=classes), ON))
    for missing in needed:
        rest = {name: played for name, played in every.items() if name != missing}
        assert list(checks(selection_evidence(rest, classes=classes), ON)) == []


def test_the_orders_are_those_that_the_paper_says():
    # Scheme number n of an order has n + 1 updates of 8 in world 4 and asks client 0 once, the
    # other n + 1 times. So a later scheme has more updates, by an eighth, and is less fair.
    def in_order(names):
        schemes = {}
        for number, name in enumerate(names):
            counts = [(1, number + 1)]
            schemes[name] = participation([[number + 1] * 2], counts, seeds=(4,))
        return selection_evidence(schemes, cohort=COHORT)

    fairest = ("random", "e3cs-0.8", "pow-d", "e3cs-0.5", "e3cs-0", "fedcs")
    fairness = list(selection.fairness_order(in_order(fairest), ON))
    assert len(fairness) == 5
    # Jain's index of 1 and n is (1 + n)^2 / (2 (1 + n^2)): 1, 9/10, 4/5, 25/34, 9/13, 49/74.
    jain = [1, 9 / 10, 4 / 5, 25 / 34, 9 / 13, 49 / 74]
    for check, high, low in zip(fairness, jain[:-1], jain[1:], strict=True):
        assert check.supports == pytest.approx({4: high - low})
        assert check.unit == "fairness"

    fewest = ("random", "e3cs-0.8", "e3cs-0.5", "e3cs-0", "fedcs")
    success = list(selection.success_order(in_order(fewest), ON))
    assert [check.supports for check in success] == [{4: 1 / 8}] * 4
    assert {check.unit for check in success} == {"ratio"}
    (who_fails,) = selection.powd_asks_who_fails(in_order(("pow-d", "random")), ON)
    assert who_fails.supports == {4: 1 / 8}


def test_a_scheme_of_an_order_that_was_not_played_has_no_world():
    schemes = {"random": participation([[4]]), "fedcs": participation([[8]])}
    for check in selection.success_order(selection_evidence(schemes), ON):
        assert check.supports == {}


def tenths(random, powd, seeds=(0, 1)):
    schemes = {
        "random": participation([random] * 2),
        "pow-d": participation([powd] * 2, seeds=seeds),
    }
    evidence = selection_evidence(schemes, cohort=COHORT)
    return supports(selection.powd_is_low_throughout(evidence, ON))


def test_ten_rounds_have_ten_tenths_and_nine_have_none():
    # Random has 8, 7, ... updates of 8; pow-d has 4 in every round. World 1 is that of both.
    found = tenths([8, 7, 6, 5, 4, 3, 2, 1, 0, 0], [4] * 10, seeds=(1, 2))
    assert len(found) == 10
    assert found["Random above pow-d in tenth 1"] == {1: (8 - 4) / 8}
    assert found["Random above pow-d in tenth 8"] == {1: (1 - 4) / 8}
    assert found["Random above pow-d in tenth 10"] == {1: (0 - 4) / 8}
    assert tenths([4] * 9, [4] * 9) == {}
    assert tenths([4] * 20, [4] * 9) == tenths([4] * 9, [4] * 20) == {}


def turn(*curves):
    """Return the two comparisons of E3CS-inc at its turn; worlds are 3, 4, ..."""
    seeds = range(3, 3 + len(curves))
    schemes = {"e3cs-inc": participation(curves, seeds=seeds)}
    evidence = selection_evidence(schemes, cohort=COHORT)
    return [check.supports for check in selection.turn_of_inc(evidence, ON)]


def test_each_world_has_a_steepest_drop_of_its_own():
    # 200 rounds: the turn is at 50, the windows have 8 rounds, and near is within 4.
    at_turn = in_rounds((7, 50), (3, 150))
    before = in_rounds((7, 47), (3, 153))
    after = in_rounds((7, 60), (3, 140))
    drop, near = turn(at_turn, before, after)
    # Before the turn five rounds of 7 and three of 3: a mean of 5.5.
    assert drop == pytest.approx({3: (7 - 3) / 8, 4: (5.5 - 3) / 8, 5: 0})
    assert near == pytest.approx({3: 4 - 0, 4: 4 - 3, 5: 4 - 10})


def test_one_good_round_is_no_steep_drop():
    # A single 8 makes the mean of a window of 8 rounds higher by 6 / 8 alone; the turn drops by 4.
    curve = in_rounds((6, 50), (2, 100), (8, 1), (2, 49))
    _, near = turn(curve)
    assert near == {3: 4}


def test_the_first_and_the_last_windows_count():
    # The steepest drops are at rounds 8 and 192, as near to the ends as two windows allow.
    _, near = turn(in_rounds((7, 8), (3, 192)), in_rounds((7, 192), (3, 8)))
    assert near == pytest.approx({3: 4 - 42, 4: 4 - 142})


def test_few_rounds_have_a_turn_if_there_is_a_round_before_it():
    # Four rounds turn after the first; windows have one round. Three have no turn.
    drop, near = turn([8, 4, 4, 4])
    assert drop == {3: 4 / 8}
    assert near == pytest.approx({3: 4 / 50})
    assert turn([8, 4, 4]) == []


def test_cases_of_the_regret_with_another_update_are_passed_over():
    margins = {
        "e3cs-0, robust, eta 0.5000": [-1.0],
        "e3cs-0, exact, eta 0.5000": [5.0, 6.0],
        "switch, robust, eta 0.5000": [-2.0],
        "switch, successive, eta 0.5000": [7.0],
    }
    evidence = selection_evidence({}, bound_margins=margins)
    assert supports(selection.regret_below_bound(evidence, ON)) == {
        "bound less regret: e3cs-0, exact, eta 0.5000": {0: 5.0, 1: 6.0},
        "bound less regret: switch, successive, eta 0.5000": {0: 7.0},
    }


def test_the_turn_is_where_the_success_drops():
    before_and_after = np.r_[np.full(25, 18), np.full(75, 9)]
    drop, where = selection.turn_of_inc(
        selection_evidence({"e3cs-inc": participation([before_and_after] * 3)}), "selection"
    )
    assert drop.mean == pytest.approx(9 / 20)
    assert where.mean == pytest.approx(100 / 50)
    assert {found.verdict for found in decide([drop, where])} == {"holds"}
    late = np.r_[np.full(50, 18), np.full(50, 9)]
    checks = selection.turn_of_inc(
        selection_evidence({"e3cs-inc": participation([late] * 3)}), "selection"
    )
    assert [found.verdict for found in decide(list(checks))] == ["cannot be told", "fails"]


def test_the_turn_is_seen_in_a_twenty_fifth_of_the_rounds_on_either_side():
    # 100 rounds: four before round 25 with 14 answers of 20, four after it with 9.
    curve = np.r_[np.full(21, 18), np.full(4, 14), np.full(4, 9), np.full(71, 5)]
    drop, _ = selection.turn_of_inc(
        selection_evidence({"e3cs-inc": participation([curve] * 3)}), "selection"
    )
    assert drop.mean == pytest.approx((14 - 9) / 20)


def test_orders_of_fairness_and_success_are_judged_neighbour_by_neighbour():
    evidence = selection_evidence(
        {
            "random": participation([[10, 10]] * 3, [[5, 5]] * 3),
            "e3cs-0.5": participation([[12, 12]] * 3, [[4, 6]] * 3),
            "e3cs-0": participation([[16, 16]] * 3, [[1, 9]] * 3),
            "fedcs": participation([[15, 15]] * 3, [[0, 10]] * 3),
        },
    )
    fair = {}
    for found in decide(list(selection.fairness_order(evidence, "selection"))):
        fair[found.check.description] = found.verdict
    assert (
        fair["fairness: e3cs-0.5 above e3cs-0"] == fair["fairness: e3cs-0 above fedcs"] == "holds"
    )
    assert fair["fairness: random above e3cs-0.8"] == "not run"
    won = {}
    for found in decide(list(selection.success_order(evidence, "selection"))):
        won[found.check.description] = found
    assert won["ratio: fedcs above e3cs-0"].check.mean == pytest.approx(-1 / 20)
    assert won["ratio: fedcs above e3cs-0"].verdict == "fails"


def test_dozens_and_the_best_class_are_counted_by_class():
    counts = [[10, 30, 500, 700]]  # classes 0, 0, 1, 1
    evidence = selection_evidence(
        {"e3cs-0": participation([[1]], counts), "fedcs": participation([[1]], [[0, 0, 1200, 0]])},
        classes=np.array([0, 0, 1, 1]),
    )
    (in_all,) = selection.wrong_in_total(evidence, "selection")
    assert in_all.mean == 100 - 40
    (each,) = selection.wrong_per_client(evidence, "selection")
    assert each.mean == 100 - 20
    most = {c.description: c.mean for c in selection.best_class_asked_most(evidence, "selection")}
    assert most["e3cs-0 asks the best class most"] == 600 - 20
    (fair,) = selection.fair_among_the_best(evidence, "selection")
    assert fair.mean == pytest.approx(1200**2 / (2 * (500**2 + 700**2)) - 0.5)


def test_e3cs_inc_becomes_random_by_construction():
    inc = make_selector("e3cs-inc", Federation(8, 2, horizon=40, rng=5))
    chances = []
    for round in range(40):
        cohort = inc.select(round)
        chances.append(cohort.inclusion)
        inc.update(
            Outcome(cohort, cohort.clients < 2)
        )  # two clients answer always, the others never
    assert np.max(chances[9]) > 2 * 2 / 8  # it has learnt who answers
    np.testing.assert_array_equal(chances[10:], 2 / 8)


def test_pow_d_is_low_in_every_tenth_and_pays_little_of_the_most():
    plain, low = np.full(20, 10), np.r_[np.full(18, 4), np.full(2, 12)]
    evidence = selection_evidence(
        {"random": participation([plain] * 3), "pow-d": participation([low] * 3)}
    )
    checks = list(selection.powd_is_low_throughout(evidence, "selection"))
    assert [round(check.mean, 9) for check in checks] == [0.3] * 9 + [-0.1]
    schemes = {"e3cs-0": participation([[18, 18]]), "fedcs": participation([[20, 16]])}
    (kept,) = selection.little_is_sacrificed(selection_evidence(schemes), "selection")
    assert kept.mean == pytest.approx(0.1)
