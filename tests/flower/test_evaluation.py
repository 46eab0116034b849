"""Evaluations by the clients."""

from math import nan

import pytest
from fakes import (
    federation,
)
from flwr.app import Error, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    FedAvg,
)
from helpers import cohort_strategy, initial


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
