"""Evaluations by the clients."""

from math import nan

import pytest
from fakes import (
    federation,
)
from flwr.app import ConfigRecord, Error, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    FedAvg,
)
from helpers import cohort_strategy, initial

from fedcohort.flower.errors import NOT_TAKEN, TROUBLE, error_reply


def test_a_broken_evaluation_is_named_and_the_others_count(clock, logged):
    grid = federation(clock, 4)
    grid.clients[101].evaluate = lambda message: RecordDict(
        {"metrics": MetricRecord({"num-examples": 2, "accuracy": nan})}
    )
    grid.clients[102].evaluate = lambda message: Error(2, "Traceback\nKeyError: 'labels'")
    result = cohort_strategy(FedAvg()).start(grid, initial(), num_rounds=1)
    assert result.evaluate_metrics_clientapp[1]["accuracy"] == pytest.approx(
        4 * 0.3 / 5
    )  # clients 0 and 3, 1 and 4 examples
    complaints = [line for line in logged if "an evaluation does not count" in line]
    assert len(complaints) == 2
    assert any("client 1: metric 'accuracy' is not finite" in line for line in complaints)
    assert any("client 2: KeyError: 'labels'" in line for line in complaints)


def test_if_every_evaluation_is_broken_there_is_none(clock):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.evaluate = lambda message: RecordDict()
    assert (
        cohort_strategy(FedAvg()).start(grid, initial(), num_rounds=1).evaluate_metrics_clientapp
        == {}
    )


def silent_in(rounds, client):
    """Let a client that trains not evaluate in some rounds; return those it is asked to."""
    answer = client.evaluate
    asked = []

    def evaluate(message):
        server_round = message.content["config"]["server-round"]
        asked.append(server_round)
        return None if server_round in rounds else answer(message)

    client.evaluate = evaluate
    return asked


def test_a_client_that_hangs_while_it_evaluates_is_asked_ever_more_rarely(clock):
    grid = federation(clock, 4)
    hanging = silent_in(range(100), grid.clients[101])
    other = silent_in((), grid.clients[102])
    started = clock.monotonic()
    result = cohort_strategy(FedAvg(), cohort_size=4).start(grid, initial(), num_rounds=15)
    # After the third silence it rests for 2 rounds, after the fourth for 4, after the fifth for 8.
    assert hanging == [1, 2, 3, 6, 11]
    assert other == list(range(1, 16))
    assert len(result.evaluate_metrics_clientapp) == 15
    assert clock.monotonic() - started < 6 * 5.0  # five evaluations wait for the deadline of 5 s


def test_a_client_that_evaluates_again_has_made_all_good(clock):
    grid = federation(clock, 4)
    asked = silent_in({1, 2, 4, 5, 7, 8}, grid.clients[101])
    cohort_strategy(FedAvg(), cohort_size=4).start(grid, initial(), num_rounds=9)
    assert asked == list(range(1, 10))


def test_a_resumed_run_remembers_who_rests_from_evaluations(clock, tmp_path):
    def play(folder, num_rounds, **options):
        grid = federation(clock, 4)
        asked = silent_in(range(100), grid.clients[101])
        strategy = cohort_strategy(FedAvg(), cohort_size=4, folder=folder, **options)
        strategy.start(grid, initial(), num_rounds=num_rounds)
        return asked

    whole = play(tmp_path / "whole", 12)
    parts = play(tmp_path / "parts", 6) + play(tmp_path / "parts", 12, resume=True)
    assert parts == whole == [1, 2, 3, 6, 11]


def test_trouble_of_the_superlink_lets_nobody_rest(clock):
    grid = federation(clock, 4)
    strategy = cohort_strategy(FedAvg(), cohort_size=4)
    strategy.start(grid, initial(), num_rounds=1)
    for code, asked in ((TROUBLE, [4, 4, 4, 4]), (NOT_TAKEN, [4, 4, 4, 0])):
        found = []
        for server_round in range(2, 6):
            messages = strategy.configure_evaluate(server_round, initial(), ConfigRecord(), grid)
            found.append(len(messages))
            grid.push_messages(messages)  # it gives them their ids
            replies = [error_reply(message, code, "why") for message in messages]
            assert strategy.aggregate_evaluate(server_round, replies) is None
        assert found == asked
