"""CohortStrategy as a whole: its arguments, its loop, its logs."""

import logging
from math import inf

import pytest
from fakes import (
    FakeClient,
    federation,
    model_of,
    same,
)
from flwr.serverapp.strategy import (
    FedAvg,
)
from helpers import INITIAL, RecordingSelector, cohort_strategy, initial

from fedcohort.flower import AutoDeadline
from fedcohort.selection.protocol import Cohort


def test_a_second_start_counts_anew(clock):
    grid, strategy = federation(clock, 4), cohort_strategy()
    models = [strategy.start(grid, initial(), num_rounds=2).arrays for _ in range(2)]
    assert (strategy.training.totals.sent, strategy.training.totals.arrived) == (6, 6)
    assert sum(strategy.training.totals.asked.values()) == 6
    assert same(*models)  # the same seed, the same cohorts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"selector": "e3cs-0.6"},
            "selector must be one of .*, got 'e3cs-0.6'; did you mean 'e3cs-0",
        ),
        (
            {"selector": "fedcs"},
            "selector must be an object, not the name 'fedcs', where success_rates must be given",
        ),
        (
            {"selector": "pow-d"},
            "selector must be an object, not the name 'pow-d', where loss_of must be given",
        ),
        ({"cohort_size": 0}, "cohort_size must be a whole number at least 1, got 0"),
        ({"cohort_size": None}, "cohort_size must be a whole number at least 1, got None"),
        ({"cohort_size": True}, "cohort_size must be a whole number at least 1, got True"),
        ({"deadline": 0.0}, "deadline must be a finite number above 0, got 0.0"),
        ({"deadline": inf}, "deadline must be a finite number above 0, got inf"),
        ({"deadline": "soon"}, "deadline must be a number, a function or 'auto', got 'soon'"),
        ({"deadline": AutoDeadline}, "deadline must be an object, not its class, got AutoDeadline"),
        ({"metrics_host": 123}, "metrics_host must be a name or an address, got 123"),
        ({"seed": -1}, "seed must be a whole number at least 0, got -1"),
        ({"num_clients": 2}, "num_clients must be a whole number at least 3, got 2"),
        (
            {"aggregation": "mean"},
            "aggregation must be one of wrapped, paper, normalised, .*, got 'mean'",
        ),
        ({"wait": 0}, "wait must be a finite number above 0, got 0"),
        ({"resume": True}, "folder must be given for resume and log, got None"),
        ({"tensorboard": True}, "folder must be given for resume and log, got None"),
    ],
)
def test_a_bad_argument_is_named_with_its_bound_and_its_value(options, message):
    with pytest.raises(ValueError, match=message):
        cohort_strategy(**options)


@pytest.mark.parametrize("rounds", [0, -1, 1.5])
def test_the_number_of_rounds_must_be_whole_and_positive(clock, rounds):
    with pytest.raises(
        ValueError, match=f"num_rounds must be a whole number at least 1, got {rounds}"
    ):
        cohort_strategy().start(federation(clock, 4), initial(), num_rounds=rounds)


def test_warnings_reach_flowers_own_logger(clock, monkeypatch):
    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    logging.getLogger("flwr").addHandler(handler)
    try:
        strategy = cohort_strategy(num_clients=5, partial_start=True)
        strategy.start(federation(clock, 4), initial(), num_rounds=1)
    finally:
        logging.getLogger("flwr").removeHandler(handler)
    assert any("4 of 5 clients connected" in line for line in heard)


def test_without_a_deadline_the_slowest_is_waited_for(clock):
    grid, selector = federation(clock, 3), RecordingSelector(3, 3)
    grid.clients[102].delay = 900.0
    cohort_strategy(selector=selector, cohort_size=None, deadline=None).start(
        grid, initial(), num_rounds=1
    )
    assert selector.outcomes == [{0: True, 1: True, 2: True}]


def test_without_closing_early_every_round_takes_the_deadline(clock):
    grid = federation(clock, 3)
    cohort_strategy(close_early=False).start(grid, initial(), num_rounds=2)
    starts = sorted({message.metadata.created_at for message in grid.sent()})
    assert starts[1] - starts[0] == pytest.approx(5.0, abs=0.2)


def test_nothing_is_left_behind_whatever_clients_do(clock):
    grid = federation(clock, 5)
    grid.clients[101].delay = 30.0
    grid.clients[102].train = lambda message: None
    grid.clients[103].evaluate = lambda message: None
    clock.after(3.0, lambda: grid.leave(104))
    cohort_strategy(FedAvg(), cohort_size=5).start(grid, initial(), num_rounds=3)
    clock.sleep(60.0)
    assert grid.left_behind == []


def test_the_model_given_is_not_changed(clock):
    given = initial()
    cohort_strategy().start(federation(clock, 3), given, num_rounds=2)
    assert {name: array.tolist() for name, array in model_of(given).items()} == {
        name: array.tolist() for name, array in INITIAL.items()
    }


@pytest.mark.parametrize("when", [0, 1])
def test_a_run_that_ends_by_an_exception_is_cleaned_up(clock, when):
    grid, inner = federation(clock, 5), FedAvg(min_train_nodes=4, min_evaluate_nodes=5)
    clock.after(0.5, lambda: grid.join(200, FakeClient("9", query_delay=4.0)))
    for client in list(grid.clients.values()):
        client.delay = 2.0
    run = cohort_strategy(inner, cohort_size=2)
    closed = []

    def evaluate(round, arrays):
        run.training.on_row.__self__.close = lambda: closed.append(True)
        if round == when:
            raise KeyError("the user's own evaluation")

    with pytest.raises(KeyError, match="the user's own evaluation"):
        run.start(grid, initial(), num_rounds=3, evaluate_fn=evaluate)
    assert (inner.min_train_nodes, inner.min_evaluate_nodes) == (4, 5)
    assert closed == [True]
    assert grid.left_behind == []


def test_an_error_while_cleaning_up_does_not_hide_the_one_that_ended_the_run(clock, monkeypatch):
    run = cohort_strategy()

    def fail(*_):
        raise ConnectionError("the SuperLink is gone")

    monkeypatch.setattr(run.registry.node_names, "close", fail)

    def evaluate(round, arrays):
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        run.start(federation(clock, 3), initial(), num_rounds=1, evaluate_fn=evaluate)


def test_a_selector_of_ones_own_that_asks_nobody_known_is_named(clock):
    class Stranger(RecordingSelector):
        def select(self, round, available=None):
            return Cohort(round, [0, 9], [0.5, 0.5])

    strategy = cohort_strategy(selector=Stranger(3, 2), cohort_size=None)
    with pytest.raises(ValueError, match=r"Stranger.*got 9"):
        strategy.start(federation(clock, 3), initial(), num_rounds=1)
