from math import inf, isnan, nan

import numpy as np
import pytest
from made import result

from fedcohort.paper.cells import Cell, cells, value, values
from fedcohort.paper.setting import setting
from fedcohort.paper.tabulate import (
    cell_of,
    in_numbers,
    long_rows,
    ours,
    ours_alone,
    tables,
    theirs,
)

CURVE = (0.2, 0.46, 0.44, 0.45)


def test_a_run_says_when_it_first_reached_a_target_and_where_it_ended():
    run = result(accuracy=CURVE, official=(nan, 0.4, nan, 0.42))
    assert value(run, 0.45) == 2
    assert value(run, 0.2) == 1
    assert value(run, 0.5) == inf
    assert value(run, "final") == pytest.approx(0.45)
    assert value(run, "official") == pytest.approx(0.42)


def test_an_accuracy_that_equals_the_target_has_reached_it_though_kept_in_float32():
    assert value(result(accuracy=(0.1, 2250 / 5000)), 0.45) == 2


def test_an_unfinished_run_has_no_end_and_has_not_missed_a_target_yet():
    run = result(accuracy=CURVE, rounds=9)
    assert value(run, 0.45) == 2
    assert isnan(value(run, 0.5))
    assert isnan(value(run, "final"))
    assert values([run], 0.5) == {}


@pytest.mark.parametrize(
    ("seen", "paper", "outside"),
    [
        ((100.0, 110.0, 120.0), 130.0, False),  # mean 110, sd 10: the limits are 90 and 130
        ((100.0, 110.0, 120.0), 131.0, True),
        ((100.0, 110.0, 120.0), 89.0, True),
        ((100.0, 110.0, 120.0), inf, True),  # every run got there, the paper's did not
        ((100.0, inf), inf, False),
        ((inf, inf), 500.0, True),
        ((100.0, 110.0, inf), 900.0, False),  # a run that never got there: no upper limit
        ((100.0, 110.0, inf), 50.0, True),  # mean 105, sd 7.07: the lower limit is 90.9
        ((100.0, inf), 90.0, None),  # one value has no spread
        ((100.0,), 100.0, None),
        ((), 100.0, None),
        ((100.0, 110.0), None, None),
    ],
)
def test_the_papers_value_is_outside_beyond_two_standard_deviations(seen, paper, outside):
    assert Cell(seen, paper).outside is outside


def test_fewer_rounds_than_the_papers_say_nothing_of_what_it_reached_later():
    assert Cell((inf, inf), 700.0, played=600).outside is None
    assert Cell((inf, inf), inf, played=600).outside is None
    assert Cell((inf, inf), 500.0, played=600).outside is True
    assert ours(Cell((inf, inf), 700.0, played=600), [result()] * 2, 0.45) == "not in 600"
    assert (
        cell_of(setting("cifar10", {"rounds": 9}), ("random", "iid", "paper", 0.0), [], 0.45).played
        == 9
    )


def test_mean_sd_and_difference_are_those_worked_by_hand():
    cell = Cell((100.0, 110.0, 120.0, inf), 100.0)
    assert (cell.mean, cell.sd, cell.difference) == (110.0, 10.0, 10.0)
    assert isnan(Cell((100.0,), inf).difference)
    assert isnan(Cell((100.0,)).sd)


@pytest.mark.parametrize(
    ("seen", "paper", "quantity", "left", "right"),
    [
        ((100.0, 110.0, 120.0), 131.0, 0.45, "110 ± 10", "131 (−21)*"),
        ((100.0, 110.0, 120.0, inf), inf, 0.45, "110 ± 10 (3 of 4)", "never"),
        ((inf, inf), inf, 0.45, "never", "never"),
        ((0.70, 0.72), 0.7146, "final", "71.00 ± 1.41", "71.46 (−0.46)"),
        ((0.70,), 0.69, "final", "70.00", "69.00 (+1.00)?"),
    ],
)
def test_cells_read_as_in_a_table(seen, paper, quantity, left, right):
    cell, runs = Cell(seen, paper), [result()] * len(seen)
    assert ours(cell, runs, quantity) == left
    assert theirs(cell, quantity) == right


def test_what_was_not_run_or_has_not_come_that_far_is_said():
    assert ours(Cell(()), [], 0.45) == "not run"
    assert ours(Cell(()), [result(accuracy=(0.1,) * 7, rounds=9)], 0.45) == "not by 7"
    assert ours(Cell(()), [result(accuracy=(0.1,) * 7, rounds=9)], "final") == "unfinished"


def test_of_fewer_rounds_than_the_papers_every_table_says_so():
    short = result(accuracy=(0.1,) * 800)
    assert ours(ours_alone([short], 0.45), [short], 0.45) == "not in 800"
    whole = result(accuracy=(0.1,) * 2500)
    assert ours(ours_alone([whole], 0.45), [whole], 0.45) == "never"


def test_numbers_tell_never_from_not_yet():
    runs = {
        "never": [result(accuracy=(0.1,) * 9)],
        "not yet": [result(accuracy=(0.1,) * 7, rounds=9)],
    }
    told = {word: in_numbers(ours_alone(here, 0.45), here, 0.45) for word, here in runs.items()}
    assert {word: (row["runs"], row["pending"], row["reached"]) for word, row in told.items()} == {
        "never": (1, 0, 0),
        "not yet": (1, 1, 0),
    }


def test_all_rows_have_the_same_columns_though_the_paper_has_values_for_some_schemes_alone():
    of = setting("cifar10", {"rounds": 800})  # E3CS-inc cannot be compared then
    rows = {row["scheme"]: row for row in tables(of, cells([], [of])[0][0])["iid, FedAvg"]}
    assert len({tuple(row) for row in rows.values()}) == 1
    assert (rows["E3CS-inc"]["paper @45"], rows["Random"]["paper @45"]) == ("-", "121")


def test_one_seed_of_several_that_got_there_has_no_spread():
    assert theirs(Cell((100.0, inf, inf), 90.0), 0.45) == "90 (+10)?"


def test_runs_that_have_not_come_that_far_are_counted_and_leave_the_spread_unknown():
    of = setting("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    runs = [
        result(of, curve, rounds=3, first_seed=seed)
        for seed, curve in enumerate(((0.1, 0.5, 0.5), (0.5,) * 3, (0.1, 0.1)))
    ]
    assert ours(cell_of(of, key, runs, 0.45), runs, 0.45) == "2 ± 1 (2 of 3)"
    assert cell_of(of, key, runs, 0.45).outside is None
    assert theirs(cell_of(of, key, runs, 0.45), 0.45) == "121 (−120)?"
    assert ours(cell_of(of, key, runs, 0.9), runs, 0.9) == "never (2 of 3)"
    assert ours(cell_of(of, key, runs, "final"), runs, "final") == "50.00 ± 0.00 (2 of 3)"
    assert theirs(cell_of(of, key, runs[2:], "final"), "final") == "71.46"


def test_cells_gather_the_seeds_of_a_scheme_in_order_and_leave_other_settings_out():
    of = setting("cifar10", {"rounds": 4})
    runs = [
        result(of, CURVE, first_seed=2),
        result(of, CURVE, first_seed=0),
        result(of, CURVE, cohort=10),
        result(of, CURVE, mus=(0.5,)),
        result(of, CURVE, server_rate=0.5),
        result(of, CURVE, model="cifar-cnn-same", first_seed=5),
    ]
    ((found,), _) = cells(runs, [of], ("model",))
    assert len(found) == 7 * 2 * 2
    assert [run.config.first_seed for run in found["random", "iid", "paper", 0.0]] == [0, 2]
    assert [run.config.mus for run in found["random", "iid", "paper", 0.5]] == [(0.5,)]
    assert found["fedcs", "iid", "paper", 0.0] == []


def test_of_precisions_and_models_that_are_not_asked_for_the_most_common_is_taken():
    of = setting("cifar10", {"rounds": 4})
    fast = {"precision": "bf16", "device": "cuda"}
    runs = [
        result(of, CURVE, first_seed=0),
        result(of, CURVE, first_seed=0, **fast),
        result(of, CURVE, first_seed=1, **fast),
    ]
    key = ("random", "iid", "paper", 0.0)
    assert [run.config.precision for run in cells(runs, [of])[0][0][key]] == ["bf16", "bf16"]
    assert [run.config.precision for run in cells(runs, [of], ("precision",))[0][0][key]] == [
        "float32"
    ]


def test_what_is_asked_for_together_is_of_one_kind_and_the_rest_is_said_to_be_left_out():
    of = setting("cifar10", {"rounds": 4})
    wider = setting("cifar10", {"rounds": 4}, cohort=30)
    other = {"model": "cifar-cnn-same"}
    runs = [result(of, CURVE), result(of, CURVE, first_seed=1), result(wider, CURVE, **other)]
    key = ("random", "iid", "paper", 0.0)
    (mine, theirs), said = cells(runs, [of, wider])
    assert (len(mine[key]), theirs[key]) == (
        2,
        [],
    )  # not a wider cohort of another network beside them
    assert said == [
        "Not shown: 1 run on cifar10 with model cifar-cnn-same; a table is of one kind, and --model and --precision choose it."
    ]
    alone, said = cells(runs, [wider])
    assert ([run.config.model for run in alone[0][key]], said) == (["cifar-cnn-same"], [])


def test_published_values_stand_only_where_they_can_be_compared():
    of = setting("cifar10", {})
    key = ("random", "iid", "paper", 0.0)
    assert cell_of(of, key, [], 0.45).paper == 121
    assert cell_of(of, key, [], "final").paper == pytest.approx(0.7146)
    assert cell_of(setting("cifar10", {"rounds": 9}), key, [], 0.45).paper == 121
    assert cell_of(setting("cifar10", {"rounds": 9}), key, [], "final").paper is None
    assert cell_of(setting("cifar10", {}, cohort=10), key, [], 0.45).paper is None
    assert cell_of(setting("cifar10", {"dataset": "digits"}), key, [], 0.45).paper is None
    assert cell_of(of, ("random", "iid", "normalised", 0.0), [], 0.45).paper is None
    inc, never = ("e3cs-inc", "iid", "paper", 0.0), ("fedcs", "iid", "paper", 0.0)
    assert cell_of(of, inc, [], 0.45).paper == 89
    assert (
        cell_of(setting("cifar10", {"rounds": 900}), inc, [], 0.45).paper is None
    )  # it turns at a quarter of the rounds
    assert cell_of(of, never, [], 0.65).paper == inf
    assert (
        cell_of(setting("cifar10", {"rounds": 2600}), never, [], 0.65).paper is None
    )  # who knows what came of it later


def test_the_table_of_two_seeds_is_the_one_worked_by_hand():
    of = setting("cifar10", {})
    curves = np.zeros((2, 2500))
    for row, first in enumerate((101, 121)):
        curves[row, first - 1 :] = 0.5
    runs = [result(of, curve, first_seed=seed) for seed, curve in enumerate(curves)]
    ((found,), _) = cells(runs, [of])
    made = tables(of, found)
    assert list(made) == ["iid, FedAvg", "iid, FedProx", "non-iid, FedAvg", "non-iid, FedProx"]
    row = next(row for row in made["iid, FedAvg"] if row["scheme"] == "Random")
    assert row == {
        "scheme": "Random", "runs": 2, "@45": "111 ± 14", "paper @45": "121 (−10)", "@55": "never", "paper @55": "251*",
        "@65": "never", "paper @65": "515*", "final": "50.00 ± 0.00", "paper final": "71.46 (−21.46)*",
    }  # fmt: skip
    assert made["non-iid, FedProx"][0]["@45"] == "not run"
    numbers = next(
        r
        for r in long_rows(of, found)
        if (r["selector"], r["partition"], r["mu"]) == ("random", "iid", 0.0)
    )
    assert (numbers["mean"], numbers["paper"], numbers["difference"], numbers["runs"]) == (
        111,
        121,
        -10,
        2,
    )
