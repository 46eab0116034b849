from math import exp, inf, isnan, log, sqrt

import numpy as np
import pytest
from made import result

from fedcohort.paper.cells import Cell, prediction_factor
from fedcohort.paper.fit import Spread, pooled_spread, score, score_rows
from fedcohort.paper.fit_cells import Deviation, cells_of, comparable_cells
from fedcohort.paper.paired_fit import Network, paired_rows
from fedcohort.paper.readings import PRINTED, split_worlds
from fedcohort.paper.results import Results
from fedcohort.paper.setting import task_config
from fedcohort.paper.table_reports import report


def test_the_spread_pools_the_worlds_of_all_cells():
    # Squares about the means: 0.5 in the first group (1 degree), 2 in the second (2 degrees). One
    # cell in each group: nothing moves together. A cell with fewer worlds is left out.
    first = [Deviation({1: 1.0, 2: 2.0}, 0.0)]
    second = [Deviation({1: 4.0, 2: 5.0, 3: 6.0}, 0.0), Deviation({1: 9.0}, 0.0)]
    spread = pooled_spread([first, second, []])
    assert spread.degrees == 3
    assert spread.sd == pytest.approx(sqrt(2.5 / 3))
    assert pooled_spread([[Deviation({1: 1.0}, 0.0)]]) == Spread(0.0, 0)


def test_cells_that_move_together_are_worth_fewer_degrees():
    same = Deviation({1: 1.0, 2: 3.0}, 0.0)
    assert pooled_spread([[same, same, same]]) == Spread(sqrt(2.0), 1.0)  # three times one cell
    # Opposite moves of two cells: no common move, so two degrees.
    opposite = pooled_spread([[same, Deviation({1: 3.0, 2: 1.0}, 0.0)]])
    assert opposite == Spread(sqrt(2.0), 2.0)


def test_the_prediction_interval_covers_one_more_world_as_often_as_it_says():
    # Seven schemes in two groups of two and three worlds; a world moves all schemes by as much as
    # their own noise.
    rng = np.random.default_rng(3)
    held = 0
    asked = 0
    for _ in range(400):
        groups = []
        for worlds in (2, 3):
            moves = rng.normal(size=(7, worlds + 1)) + rng.normal(size=worlds + 1)
            groups.append(moves)
        known = []
        for moves in groups:
            known.append([Deviation(dict(enumerate(row[:-1])), 0.0) for row in moves])
        spread = pooled_spread(known)
        row = groups[0][0]  # one cell: the others of this world are not independent of it
        margin = prediction_factor(2, spread.degrees) * spread.sd
        held += abs(row[-1] - row[:-1].mean()) <= margin
        asked += 1
    error = 3 * (0.95 * 0.05 / asked) ** 0.5  # three standard errors
    assert held / asked >= 0.95 - error


def test_scores_are_those_worked_by_hand():
    cells = [
        Cell((100.0, 100.0), 110.0, seeds=(1, 2)),  # off by log 1.1
        Cell((100.0, 100.0), 200.0, seeds=(1, 2)),  # off by log 2
        Cell((inf, inf), inf),  # agrees
        Cell((50.0, inf), inf),  # one world got there
        Cell((50.0, inf), 60.0),  # one world did not
        Cell((), 60.0),  # not run
        Cell((50.0,), 60.0, pending=1),  # not finished
        Cell((50.0,), None),  # nothing to compare with
    ]
    # t of 10 degrees is 2.228; times 0.1 times the root of 1.5 is 0.273: log 1.1, not log 2
    found = score([(cell, Spread(0.1, 10)) for cell in cells], in_logs=True)
    assert (found.cells, found.nevers, found.nevers_agree, found.inside) == (5, 3, 1, 2)
    assert found.median == pytest.approx((log(1.1) + log(2)) / 2)
    assert found.worst == pytest.approx(log(2))
    wide = [(cells[0], Spread(0.1, 10)), (cells[1], Spread(0.3, 10))]  # each has its own spread
    assert score(wide, in_logs=True).inside == 2
    assert score([(cell, Spread(0.0, 0)) for cell in cells], in_logs=True).inside is None
    assert score([(Cell(()), Spread(0.1, 3))], in_logs=True) is None


def test_what_the_paper_says_beyond_our_rounds_is_not_scored():
    spread = Spread(0.1, 10)
    never = Cell((inf, inf), inf, rounds_played=400, seeds=(1, 2))  # ours might have come later
    late = Cell((inf, inf), 515.0, rounds_played=400, seeds=(1, 2))
    early = Cell((300.0, 310.0), 515.0, rounds_played=400, seeds=(1, 2))
    for cell in (never, late, early):
        assert score([(cell, spread)], in_logs=True) is None
    within = Cell((inf, inf), 121.0, rounds_played=400, seeds=(1, 2))  # slower than the paper
    found = score([(within, spread), (never, spread)], in_logs=True)
    assert (found.cells, found.nevers, found.nevers_agree) == (1, 1, 0)


def test_nevers_alone_have_no_deviation():
    found = score([(Cell((inf,), inf, seeds=(1,)), Spread(0.0, 0))], in_logs=True)
    assert isnan(found.median)
    assert isnan(found.worst)
    config = task_config("cifar10", {})
    low = {("fedcs", "iid", "paper", 0.0): [result(config, np.full(2500, 0.1))]}
    rounds, _ = score_rows(config, low, low)
    assert (rounds["median"], rounds["worst"], rounds["both say never"]) == ("-", "-", "1 of 3")


def test_networks_are_not_compared_where_the_paper_is_beyond_our_rounds():
    # Random, iid: the paper has 121, 251 and 515.
    config = task_config("cifar10", {"rounds": 400})
    key = ("random", "iid", "paper", 0.0)
    networks = []
    for name, first in (("a", 300), ("b", 350)):
        curve = np.repeat([0.1, 0.7], [first - 1, 401 - first])
        networks.append(Network(name, config, {key: [result(config, curve)]}))
    assert [row["quantity"] for row in paired_rows(*networks)] == ["@45", "@55"]


def test_rows_say_rounds_in_per_cent_and_accuracies_in_points():
    config = task_config("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    curves = np.full((2, 2500), 0.7)
    curves[0, :133] = 0.1  # the paper's Random: 121, 251, 515, and 71.46 %
    curves[1, :120] = 0.1
    runs = [result(config, curve, first_seed=seed) for seed, curve in enumerate(curves)]
    rounds, final = score_rows(config, {key: runs}, {key: runs})
    worst = exp(log(515) - (log(134) + log(121)) / 2) - 1
    assert rounds["worst"] == f"{100 * worst:.1f} %"
    # One cell in each column, so one degree, t 12.7; the logs of 134 and 121 have an sd of 0.072:
    # the margin is 12.7 * 0.072 * 1.5^0.5 = 1.12, and log(515 / 127.3) is 1.40.
    assert (rounds["inside"], rounds["df"]) == ("2 of 3", "1")
    assert (final["median"], final["n"], final["group"]) == ("1.46 points", "2", "iid, FedAvg")


def test_degrees_are_those_of_the_columns_whose_cells_are_scored():
    # Both runs stop at round 300 with 60 %: nothing is known of 65 %, so its spread does not count.
    config = task_config("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    curves = np.full((2, 300), 0.6)
    curves[0, :133] = 0.1
    curves[1, :120] = 0.1
    runs = []
    for seed, curve in enumerate(curves):
        runs.append(result(config, curve, first_seed=seed, rounds=2500))
    (rounds,) = score_rows(config, {key: runs}, {key: runs})
    assert (rounds["inside"], rounds["df"]) == ("2 of 2", "1")
    never = ("e3cs-0", "iid", "paper", 0.0)  # the paper's E3CS-0 never reaches 65 %
    low = {never: [result(config, np.full(2500, 0.1), first_seed=seed) for seed in (0, 1)]}
    rounds, _ = score_rows(config, low, low)
    assert (rounds["inside"], rounds["df"]) == ("1 of 3", "-")


def test_a_column_that_an_unfinished_run_leaves_open_counts_finished_worlds_alone():
    # The paper's Random and pow-d, iid: 45 % at 121 and 126, 55 % at 251 and 328. World 0 is
    # finished: both at round 134 with 60 %. World 1 stops at round 300: Random gets to 45 % at 151
    # and has 60 % then, pow-d stays at 50 %, so that 55 % is open for it.
    config = task_config("cifar10", {})
    curves = {
        "random": (np.repeat([0.1, 0.6], [133, 2367]), np.repeat([0.1, 0.6], [150, 150])),
        "pow-d": (np.repeat([0.1, 0.6], [133, 2367]), np.repeat([0.1, 0.5], [150, 150])),
    }
    cells = {}
    for name, (finished, unfinished) in curves.items():
        cells[name, "iid", "paper", 0.0] = [
            result(config, finished, first_seed=0),
            result(config, unfinished, first_seed=1, rounds=2500),
        ]
    rounds, final = score_rows(config, cells, cells)
    # 45 % counts both worlds, 55 % the first alone, though Random got there in both.
    at_45 = sqrt(134 * 151)
    deviations = [at_45 / 121, at_45 / 126, 251 / 134, 328 / 134]
    assert rounds["n"] == "1 to 2"
    assert rounds["worst"] == f"{100 * (328 / 134 - 1):.1f} %"
    assert rounds["cells"] == 6  # the third target is never reached: no deviation
    assert rounds["median"] == f"{100 * (exp(np.median(np.log(deviations))) - 1):.1f} %"
    # Only 45 % shows how far worlds differ: two cells with an interval, and two never agree.
    assert rounds["inside"] == "2 of 4"
    assert (final["n"], final["cells"], final["inside"]) == ("1", 2, "-")


def test_worlds_that_one_scheme_left_unfinished_do_not_count_for_another():
    # Random is finished in worlds 0 and 1, pow-d in 0 and 2: stacked by position, worlds 1 and 2
    # would be taken for one world. 65 % is open in both unfinished runs, so world 0 alone counts.
    config = task_config("cifar10", {})
    finished = np.repeat([0.1, 0.5, 0.7], [130, 500, 1870])
    stopped = np.repeat([0.1, 0.5], [130, 170])
    cells = {}
    for name, last_seed in (("random", 2), ("pow-d", 1)):
        runs = []
        for seed in range(3):
            curve = stopped if seed == last_seed else finished
            runs.append(result(config, curve, first_seed=seed, rounds=2500))
        cells[name, "iid", "paper", 0.0] = runs
    at_65 = comparable_cells(config, cells, 0.65)
    assert [cell.seeds for cell in at_65] == [(0,), (0,)]
    assert [cell.seeds for cell in comparable_cells(config, cells, 0.45)] == [(0, 1, 2)] * 2


def test_the_spread_takes_cells_of_the_same_worlds():
    one = Deviation({0: 1.0, 1: 3.0}, 0.0)
    other = Deviation({0: 1.0, 2: 9.0}, 0.0)  # as many worlds, but not the same
    assert pooled_spread([[one, other]]) == Spread(sqrt(2.0), 1.0)
    turned = Deviation({1: 3.0, 0: 1.0}, 0.0)  # the same worlds in another order
    assert pooled_spread([[one, turned]]) == Spread(sqrt(2.0), 1.0)


def test_until_its_turn_e3cs_inc_is_one_cell_with_e3cs_0():
    # The turn is round 625. At 45 % both have round 625, and at 55 % E3CS-inc has round 626.
    config = task_config("cifar10", {})
    curve = np.repeat([0.1, 0.5, 0.7], [624, 1, 1875])
    runs = [result(config, curve, first_seed=1)]
    zero = ("e3cs-0", "iid", "paper", 0.0)
    inc = ("e3cs-inc", "iid", "paper", 0.0)
    assert list(cells_of(config, {zero: runs, inc: runs}, 0.45)) == [zero]
    for quantity in (0.55, "final"):
        assert list(cells_of(config, {zero: runs, inc: runs}, quantity)) == [zero, inc]
    assert list(cells_of(config, {zero: [], inc: runs}, 0.45)) == [zero, inc]  # nothing repeats


def test_e3cs_inc_repeats_e3cs_0_only_in_the_same_worlds():
    config = task_config("cifar10", {})
    curve = np.repeat([0.1, 0.7], [99, 2401])
    runs = [result(config, curve, first_seed=seed) for seed in (1, 2, 3)]
    early = result(config, curve[:50], first_seed=3, rounds=2500)  # says nothing yet
    zero = ("e3cs-0", "iid", "paper", 0.0)
    inc = ("e3cs-inc", "iid", "paper", 0.0)
    for e3cs_0, e3cs_inc, shown in (
        (runs[:1], runs[1:], [zero, inc]),
        (runs[:2], runs[1:], [zero, inc]),
        ([*runs[:2], early], runs, [zero, inc]),
        (runs, runs[1:], [zero]),
    ):
        assert list(cells_of(config, {zero: e3cs_0, inc: e3cs_inc}, 0.45)) == shown


def test_two_networks_are_compared_in_the_worlds_of_both():
    # Random, iid, at 45 %: the paper has 121. The first network is at 100 in world 1 and at 121
    # in world 2, where the second was not trained; the second is at 110 in world 1 and at 121
    # in world 3. World 1 counts alone: log 1.21 against log 1.1. pow-d, where the paper has 126, is
    # at the same rounds: the second network is nearer, by log 1.26 against log 1.145.
    config = task_config("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    never = ("fedcs", "iid", "paper", 0.0)  # the paper's FedCS never reaches 65 %
    slow = ("pow-d", "iid", "paper", 0.0)
    networks = []
    for name, rounds_by_seed in (("a", {1: 100, 2: 121}), ("b", {1: 110, 3: 121})):
        runs = []
        for seed, first in rounds_by_seed.items():
            curve = np.full(2500, 0.5)
            curve[: first - 1] = 0.1
            runs.append(result(config, curve, first_seed=seed))
        networks.append(Network(name, config, {key: runs, never: runs, slow: runs}))
    row, final = paired_rows(*networks)
    assert (row["group"], row["quantity"], row["worlds"]) == ("iid, FedAvg", "@45", "1")
    # FedCS: the paper has 59, so the first is nearer, by log(100 / 59) against log(110 / 59).
    assert (row["cells"], row["nearer, a"], row["nearer, b"]) == (3, 1, 2)
    assert (row["worst, a"], row["worst, b"]) == ("69.5 %", "86.4 %")
    assert (row["median, a"], row["median, b"]) == ("26.0 %", "14.5 %")
    assert (final["quantity"], final["nearer, a"], final["nearer, b"]) == ("final", 0, 0)
    apart = [networks[0], Network("b", config, {key: [], never: []})]
    assert paired_rows(*apart) == []


def test_the_world_that_chose_stands_apart_and_both_readings_are_shown():
    config = task_config("cifar10", {})
    runs = []
    for model in (config.model, PRINTED):
        for seed in (0, 1, 2):
            curve = np.full(2500, 0.5 + seed / 10)
            runs.append(result(config, curve, first_seed=seed, model=model))
    shown = report("table3", "Table III", "cifar10", Results(runs), {})
    assert "on 2026-11-15 and the network on 2026-11-16" in shown.preface[0]
    for reading in ("As printed", "Best-fitting"):
        chose_nothing = shown.tables[f"{reading}: iid, FedAvg, worlds that chose nothing"]
        row = next(row for row in chose_nothing if row["scheme"] == "Random")
        assert (row["runs"], row["final"]) == (2, "65.00 ± 7.07")
        title = f"{reading}: iid, FedAvg, world 0, in which the reading was chosen"
        row = next(row for row in shown.tables[title] if row["scheme"] == "Random")
        assert (row["runs"], row["final"]) == (1, "50.00")
    alone = report("table3", "Table III", "cifar10", Results(runs), {"model": PRINTED})
    assert "iid, FedAvg, worlds that chose nothing" in alone.tables
    assert not alone.preface


def test_a_reading_that_was_not_run_says_so():
    shown = report("table3", "Table III", "cifar10", Results([]), {})
    rows = shown.tables["As printed: non-iid, FedAvg, worlds that chose nothing"]
    assert {row["final"] for row in rows} == {"not run"}


def test_worlds_are_apart_only_where_something_was_chosen():
    assert list(split_worlds("digits", {})) == [""]
    assert len(split_worlds("cifar10", {})) == 2
