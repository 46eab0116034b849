"""Training rounds: who is asked, and what the selector is told."""

import json
from copy import deepcopy
from itertools import islice
from math import nan

import numpy as np
import pytest
from fakes import (
    FakeClient,
    FakeGrid,
    federation,
    learner,
    model_of,
    record,
    returned,
    round_of,
)
from flwr.app import ConfigRecord, Error, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    FedAvg,
)
from helpers import (
    INITIAL,
    PROTECTED,
    STOCK,
    RecordingSelector,
    asked_by_round,
    cohort_strategy,
    initial,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort.flower import Limits
from fedcohort.rounds import play
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates


def test_a_selector_for_more_clients_than_are_there_keeps_places_for_them(clock):
    strategy = cohort_strategy(FedAvg(), E3CS(100, 3, rng=0), None)
    strategy.start(federation(clock, 5), initial(), num_rounds=2)
    assert strategy.training.totals.arrived == 6


@pytest.mark.parametrize("name", ["e3cs-0", "e3cs-0.5", "e3cs-inc", "e3cs-0.5-robust", "random"])
def test_with_the_same_seed_and_failures_the_cohorts_are_those_of_the_simulation(clock, name):
    clients, rounds, seed = 8, 12, 5
    table = np.array(list(islice(bernoulli(class_rates(clients), seed), rounds)))
    grid = federation(clock, clients, lambda client, round: not table[round - 1, client])
    strategy = cohort_strategy(selector=name, num_clients=clients, seed=seed)
    strategy.start(grid, initial(), num_rounds=rounds)
    selector = make_selector(name, Federation(clients, 3, rng=seed, horizon=rounds))
    simulated = list(play(selector, iter(table), rounds))
    expected = {
        place: (100 + record.cohort.clients).tolist() for place, record in enumerate(simulated, 1)
    }
    assert asked_by_round(grid) == expected
    assert strategy.training.totals.arrived == sum(int(record.valid.sum()) for record in simulated)


def test_the_selector_is_told_exactly_who_arrived(clock):
    def odd(message):
        return [
            returned(record(**INITIAL), {"num-examples": 3}),
            returned(record(**{**INITIAL, "b": np.array([nan])}), {"num-examples": 3}),
            Error(2, "Traceback\nValueError"),
            Error(1001, "stopped"),
            None,
        ][message.metadata.dst_node_id - 1]

    grid, selector = FakeGrid(clock), RecordingSelector(5, 5)
    for number in range(5):
        grid.join(number + 1, FakeClient(str(number), odd))
    cohort_strategy(selector=selector, cohort_size=None).start(grid, initial(), num_rounds=1)
    assert selector.outcomes == [{0: True, 1: False, 2: False, 3: False, 4: False}]


def test_a_model_that_is_too_late_is_a_failure_and_the_round_ends_on_time(clock):
    grid, selector = federation(clock, 3), RecordingSelector(3, 3)
    grid.clients[101].delay = 5.1
    strategy = cohort_strategy(selector=selector, cohort_size=None)
    strategy.start(grid, initial(), num_rounds=1)
    assert selector.outcomes == [{0: True, 1: False, 2: True}]
    assert clock.now - grid.sent()[0].metadata.created_at == pytest.approx(5.01, abs=0.05)


def test_those_who_join_in_a_round_can_be_asked_in_the_next(clock):
    grid, selector = federation(clock, 3), RecordingSelector(3, 3)
    for client in grid.clients.values():
        client.delay = 4.0
    clock.after(2.0, lambda: grid.join(200, learner(3)))
    clock.after(2.0, lambda: grid.join(201, learner(4)))
    strategy = cohort_strategy(selector=selector, cohort_size=None, deadline=10.0)
    strategy.start(grid, initial(), num_rounds=6)
    assert selector.joined == [2]
    assert selector.num_clients == len(strategy.registry) == 5
    assert {200, 201} & {node for nodes in asked_by_round(grid).values() for node in nodes}
    assert not {200, 201} & set(asked_by_round(grid)[1])
    assert grid.left_behind == []


@pytest.mark.parametrize("close_early", [True, False])
def test_those_who_join_are_noticed_though_rounds_are_short(clock, close_early):
    grid = federation(clock, 2)
    for client in grid.clients.values():
        client.delay = 1.5
    clock.after(2.0, lambda: grid.join(200, learner(2)))
    strategy = cohort_strategy(cohort_size=2, deadline=2.0, close_early=close_early)
    strategy.start(grid, initial(), num_rounds=12)
    assert len(strategy.registry) == 3
    assert any(200 in nodes for nodes in asked_by_round(grid).values())


def test_a_round_in_which_nobody_returns_in_time_is_pointed_out(clock, logged):
    grid = federation(clock, 2)
    for client in grid.clients.values():
        client.delay = 30.0
    cohort_strategy(cohort_size=2, deadline=20.0).start(grid, initial(), num_rounds=1)
    assert "WARNING: round 1: nobody returned within the deadline of 20 s" in logged


def test_a_deaf_node_that_joins_does_not_hold_up_the_rounds(clock):
    grid = federation(clock, 2)
    clock.after(1.0, lambda: grid.join(200, FakeClient("9", deaf=True)))
    for client in grid.clients.values():
        client.delay = 3.0
    start, strategy = clock.now, cohort_strategy(cohort_size=2, deadline=20.0)
    strategy.start(grid, initial(), num_rounds=4)
    assert max(message.metadata.created_at for message in grid.sent()) - start < 3 * 3.5
    assert len(strategy.registry) == 2
    assert {message.metadata.message_type for message in grid.left_behind} <= {
        "query.fedcohort_identity"
    }
    assert clock.now - start < 4 * 3.5 + 5.5  # the end does not wait for a minute


def test_a_client_that_is_away_is_not_asked_and_keeps_its_place(clock):
    grid, selector = federation(clock, 4), RecordingSelector(4, 3)
    client = grid.clients[101]

    def leave(message):
        clock.after(0.01, lambda: grid.leave(101))
        clock.after(9.0, lambda: grid.join(500, client))
        grid.clients[100].train = slow
        return slow(message)

    slow = grid.clients[100].train
    grid.clients[100].train = leave
    for node in grid.clients.values():
        node.delay = 4.0
    cohort_strategy(selector=selector, cohort_size=None, deadline=6.0).start(
        grid, initial(), num_rounds=6
    )
    away = [available for available in selector.available if available is not None]
    assert away
    assert all(available == [0, 2, 3] for available in away)
    assert selector.joined == []
    assert any(500 in nodes for nodes in asked_by_round(grid).values())


def test_places_are_kept_for_clients_that_come_late(clock):
    grid, selector = federation(clock, 2), RecordingSelector(4, 2)
    strategy = cohort_strategy(
        selector=selector, cohort_size=None, num_clients=4, wait=4.0, partial_start=True
    )
    clock.after(6.0, lambda: grid.join(900, learner(3)))
    for client in grid.clients.values():
        client.delay = 3.0
    strategy.start(grid, initial(), num_rounds=4)
    assert selector.available[0] == [0, 1]
    assert selector.available[-1] == [0, 1, 3]
    assert selector.joined == []


def test_a_client_that_was_lost_is_not_asked_before_a_sign_of_life(clock):
    grid, selector = FakeGrid(clock), RecordingSelector(3, 3)
    for number in range(3):
        grid.join(number + 1, learner(number), online_until=clock.now + 1000)
    grid.clients[2].train = lambda message: None
    cohort_strategy(selector=selector, cohort_size=None).start(grid, initial(), num_rounds=3)
    assert selector.outcomes == [
        {0: True, 1: False, 2: True},
        {0: True, 2: True},
        {0: True, 2: True},
    ]


GOOD = {"w": np.ones((2, 2)), "b": np.ones(1)}
ARRAYS = [
    {"arrays": record(**GOOD)},
    {"weights": record(**GOOD)},
    {},
    {"arrays": record(**GOOD), "more": record(**GOOD)},
    {"arrays": record(w=GOOD["w"])},
    {"arrays": record(**GOOD, c=np.ones(2))},
    {"arrays": record(**{**GOOD, "b": np.array([nan])})},
    {"arrays": record(**{**GOOD, "b": np.ones(1, np.float32)})},
    {"arrays": record(**{**GOOD, "w": np.ones((1, 2))})},
    {"arrays": record(**{**GOOD, "b": np.array(["x"])})},
    {"arrays": record(**{**GOOD, "b": np.array([1 + 1j])})},
]
METRICS = [
    {"num-examples": 3, "train_loss": 0.5},
    {"num-examples": 3, "train_loss": 2},
    {"num-examples": 3.5, "train_loss": 0.5, "more": 1},
    {"num-examples": 3},
    {"num-examples": 3, "train_loss": [0.5, 0.25]},
    {"num-examples": 3, "train_loss": []},
    {"train_loss": 0.5},
    {"num-examples": [3], "train_loss": 0.5},
    {"num-examples": 0},
    {"num-examples": 3, "train_loss": nan},
    {"num-examples": 10**18, "train_loss": 0.5},
]
ANSWERS = st.one_of(
    st.none(),
    st.builds(Error, st.integers(0, 2000), st.sampled_from(["", "\n", "Traceback\nKeyError: 'x'"])),
    st.builds(
        lambda arrays, metrics, name, config: RecordDict(
            {
                **arrays,
                name: MetricRecord(metrics),
                **({"config": ConfigRecord({"a": b"x"})} if config else {}),
            }
        ),
        st.sampled_from(ARRAYS[:2] * 6 + ARRAYS),
        st.sampled_from(METRICS[:2] * 6 + METRICS),
        st.sampled_from(["metrics", "metrics", "metrics", "other"]),
        st.booleans(),
    ),
)


@pytest.mark.parametrize(
    "name",
    ["FedAvg", "FedAdam", "FedAvgM", "FedMedian", "FedTrimmedAvg", "Krum", "DifferentialPrivacy"],
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    answers=st.lists(ANSWERS, min_size=10, max_size=10),
    aggregation=st.sampled_from(["wrapped", "paper"]),
)
def test_whatever_clients_answer_the_run_goes_on(clock, name, answers, aggregation):
    grid, selector = FakeGrid(clock), RecordingSelector(5, 5)
    for number in range(5):
        grid.join(
            number + 1,
            FakeClient(
                str(number),
                lambda message, number=number: deepcopy(
                    answers[5 * (round_of(message) - 1) + number]
                ),
                lambda message, number=number: deepcopy(answers[number]),
            ),
        )
    aggregation = "wrapped" if name in PROTECTED else aggregation
    stock = STOCK[name](5) if name == "DifferentialPrivacy" else STOCK[name]()
    result = cohort_strategy(stock, selector, None, aggregation=aggregation).start(
        grid, initial(), num_rounds=2
    )
    model = model_of(result.arrays)
    assert {part: array.shape for part, array in model.items()} == {
        part: array.shape for part, array in INITIAL.items()
    }
    assert all(np.isfinite(array).all() for array in model.values())
    assert [list(told) for told in selector.outcomes] == [[0, 1, 2, 3, 4]] * 2
    assert grid.left_behind == []


def test_a_round_must_be_configured_before_it_is_aggregated(clock):
    strategy = cohort_strategy()
    with pytest.raises(ValueError, match="configure_train must be called before aggregate_train"):
        strategy.aggregate_train(1, [])
    with pytest.raises(ValueError, match="start must be called before a round is configured"):
        strategy.configure_train(1, initial(), ConfigRecord(), federation(clock, 3))


def test_limits_reach_the_judge(clock):
    grid, selector = federation(clock, 3), RecordingSelector(3, 3)  # with 1, 2 and 3 examples
    cohort_strategy(
        selector=selector, cohort_size=None, limits=Limits(least_examples=2, most_examples=2)
    ).start(grid, initial(), num_rounds=1)
    assert selector.outcomes == [{0: False, 1: True, 2: False}]


def test_the_journal_has_the_probabilities_with_which_the_round_was_drawn(clock, tmp_path):
    strategy = cohort_strategy(selector="e3cs-inc", num_clients=8, folder=tmp_path)
    strategy.start(federation(clock, 8), initial(), num_rounds=8)
    lines = (tmp_path / "rounds.jsonl").read_text().splitlines()
    probabilities = [set(json.loads(line)["probabilities"].values()) for line in lines]
    # Of eight rounds the third is the first in which the quota gives everyone 3/8. In the second
    # those who arrived in the first are more likely than the others.
    assert len(probabilities[1]) > 1
    assert probabilities[2:] == [{0.375}] * 6
