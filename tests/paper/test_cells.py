from dataclasses import replace
from math import inf, isnan, nan

import pytest
from made import result

from fedcohort.paper.cells import Cell, collect_cells, run_value, values_by_seed
from fedcohort.paper.setting import task_config

CURVE = (0.2, 0.46, 0.44, 0.45)


def test_a_run_says_when_it_first_reached_a_target_and_where_it_ended():
    run = result(accuracy=CURVE, official=(nan, 0.4, nan, 0.42))
    assert run_value(run, 0.45) == 2
    assert run_value(run, 0.2) == 1
    assert run_value(run, 0.5) == inf
    assert run_value(run, "final") == pytest.approx(0.45)
    assert run_value(run, "official") == pytest.approx(0.42)


def test_an_accuracy_that_equals_the_target_has_reached_it_though_kept_in_float32():
    assert run_value(result(accuracy=(0.1, 2250 / 5000)), 0.45) == 2


def test_an_unfinished_run_has_no_end_and_has_not_missed_a_target_yet():
    run = result(accuracy=CURVE, rounds=9)
    assert run_value(run, 0.45) == 2
    assert isnan(run_value(run, 0.5))
    assert isnan(run_value(run, "final"))
    assert values_by_seed([run], 0.5) == {}


@pytest.mark.parametrize(
    ("seen", "paper", "outside"),
    [
        # Mean 110, sd 10, t 4.303 with two degrees: 110 +- 4.303 * 10 * (4/3)^0.5 is 60.3, 159.7.
        ((100.0, 110.0, 120.0), 159.0, False),
        ((100.0, 110.0, 120.0), 160.0, True),
        ((100.0, 110.0, 120.0), 60.0, True),
        ((100.0, 110.0, 120.0), 61.0, False),
        ((100.0, 110.0, 120.0), inf, True),  # every run got there, the paper's did not
        ((100.0, inf), inf, False),
        ((inf, inf), 500.0, True),
        ((100.0, 110.0, inf), 900.0, False),  # a run that never got there: no upper limit
        # Mean 105, sd 7.07, t 12.706 with one degree: 105 - 12.706 * 7.07 * 1.5^0.5 is -5.
        ((100.0, 110.0, inf), 1.0, False),
        ((100.0, 101.0, inf), 80.0, True),  # the same with an sd of 0.707: the limit is 89.5
        ((100.0, inf), 90.0, None),  # one value has no spread
        ((100.0,), 100.0, None),
        ((), 100.0, None),
        ((100.0, 110.0), None, None),
    ],
)
def test_the_papers_value_is_outside_the_prediction_interval_of_one_more_run(seen, paper, outside):
    assert Cell(seen, paper).outside is outside


def test_mean_sd_and_difference_are_those_worked_by_hand():
    cell = Cell((100.0, 110.0, 120.0, inf), 100.0)
    assert (cell.mean, cell.sd, cell.difference) == (110.0, 10.0, 10.0)
    assert isnan(Cell((100.0,), inf).difference)
    assert isnan(Cell((100.0,)).sd)


def test_cells_gather_the_seeds_of_a_scheme_in_order_and_leave_other_settings_out():
    config = task_config("cifar10", {"rounds": 4})
    runs = [
        result(config, CURVE, first_seed=2),
        result(config, CURVE, first_seed=0),
        result(config, CURVE, cohort=10),
        result(config, CURVE, mus=(0.5,)),
        result(config, CURVE, server_rate=0.5),
        result(config, CURVE, model="cifar-cnn-same", first_seed=5),
    ]
    (cells,), _ = collect_cells(runs, [config], ("model",))
    assert len(cells) == 7 * 2 * 2
    assert [run.config.first_seed for run in cells["random", "iid", "paper", 0.0]] == [0, 2]
    assert [run.config.mus for run in cells["random", "iid", "paper", 0.5]] == [(0.5,)]
    assert cells["fedcs", "iid", "paper", 0.0] == []


def test_of_precisions_and_models_that_are_not_asked_for_the_most_common_is_taken():
    config = task_config("cifar10", {"rounds": 4})
    fast = {"precision": "bf16", "device": "cuda"}
    runs = [
        result(config, CURVE, first_seed=0),
        result(config, CURVE, first_seed=0, **fast),
        result(config, CURVE, first_seed=1, **fast),
    ]
    key = ("random", "iid", "paper", 0.0)
    assert [run.config.precision for run in collect_cells(runs, [config])[0][0][key]] == [
        "bf16",
        "bf16",
    ]
    assert [
        run.config.precision for run in collect_cells(runs, [config], ("precision",))[0][0][key]
    ] == ["float32"]


def test_what_is_asked_for_together_is_of_one_kind_and_the_rest_is_said_to_be_left_out():
    config = task_config("cifar10", {"rounds": 4})
    wider = task_config("cifar10", {"rounds": 4}, cohort=30)
    other = {"model": "cifar-cnn-same"}
    runs = [
        result(config, CURVE),
        result(config, CURVE, first_seed=1),
        result(wider, CURVE, **other),
    ]
    key = ("random", "iid", "paper", 0.0)
    (cells, wider_cells), notes = collect_cells(runs, [config, wider])
    assert (len(cells[key]), wider_cells[key]) == (
        2,
        [],
    )  # not a wider cohort of another network beside them
    assert notes == [
        "Not shown: 1 run on cifar10 with model cifar-cnn-same. "
        "A table shows one kind of run; choose it with --model and --precision."
    ]
    (alone,), notes = collect_cells(runs, [wider])
    assert ([run.config.model for run in alone[key]], notes) == (["cifar-cnn-same"], [])


def test_a_run_that_belongs_to_two_comparisons_counts_once_for_what_is_common():
    config = task_config("cifar10", {"rounds": 4})
    again = replace(config, targets=(0.1,))  # the same runs, other targets
    wider = task_config("cifar10", {"rounds": 4}, cohort=30)
    other = {"model": "cifar-cnn-same"}
    runs = [result(config, CURVE, first_seed=0), result(config, CURVE, first_seed=1)]
    runs += [result(wider, CURVE, first_seed=seed, **other) for seed in range(3)]
    tables, _ = collect_cells(runs, [config, again, wider])
    key = ("random", "iid", "paper", 0.0)
    assert [len(cells[key]) for cells in tables] == [0, 0, 3]  # three runs against two, not four
