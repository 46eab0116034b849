"""Clients that fail at random in the simulation engine."""

from itertools import islice

import numpy as np
import pytest
from fakes import context, done, message
from flwr.app import Context, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.flower import (
    volatility,
)
from fedcohort.flower.client import IDENTITY
from fedcohort.flower.errors import FAILED
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates


def lot(mod, client, clients, round, kind="train", run_config=None):
    given = Context(
        1, 2, {"partition-id": client, "num-partitions": clients}, RecordDict(), run_config or {}
    )
    return mod(message(kind=kind, round=round), given, done)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**40), clients=st.integers(4, 9), rounds=st.integers(1, 6))
def test_the_lots_are_those_of_the_simulation(seed, clients, rounds):
    table = np.array(list(islice(bernoulli(class_rates(clients), seed), rounds)))
    mod = volatility(seed)
    drawn = [
        [lot(mod, c, clients, r).has_content() for c in range(clients)]
        for r in range(1, rounds + 1)
    ]
    assert np.array_equal(drawn, table)


def test_a_hundred_clients_have_the_lots_of_the_paper_in_any_round():
    table = np.array(list(islice(bernoulli(class_rates(100), 7), 400)))
    for round in (1, 2, 399, 400):
        drawn = [lot(volatility(7), client, 100, round).has_content() for client in range(100)]
        assert np.array_equal(drawn, table[round - 1])


def test_the_seed_may_come_from_the_run_and_other_rates_from_the_app():
    table = next(bernoulli(class_rates(6, (0.5, 0.2)), 11))
    drawn = [
        lot(volatility(rates=(0.5, 0.2)), client, 6, 1, run_config={"seed": 11}).has_content()
        for client in range(6)
    ]
    assert drawn == table.tolist()


def test_who_fails_by_lot_says_so_in_code_and_words():
    reply = lot(volatility(0, rates=(0.0,)), 2, 3, 9)
    assert reply.error.code == FAILED
    assert reply.error.reason == "client 2 fails in round 9, by lot"


@pytest.mark.parametrize("kind", ["evaluate", "evaluate.mine", f"query.{IDENTITY}", "query"])
def test_evaluations_and_questions_never_fail(kind):
    assert lot(volatility(0, rates=(0.0,)), 0, 1, None, kind).has_content()


def test_named_training_functions_fail_too():
    assert lot(volatility(0, rates=(0.0,)), 0, 1, 1, "train.mine").has_error()


@pytest.mark.parametrize("missing", ["partition-id", "num-partitions"])
def test_a_node_that_does_not_know_its_partition_is_an_error(missing):
    config = {"partition-id": 0, "num-partitions": 4}
    config.pop(missing)
    with pytest.raises(ValueError, match=f"node_config must hold '{missing}' for volatility"):
        volatility(0)(message(), context(**config), done)


def test_a_message_without_a_round_is_an_error():
    with pytest.raises(ValueError, match="message must hold 'server-round' in a configuration"):
        lot(volatility(0), 0, 4, None)


@pytest.mark.parametrize("round", [0, -1, 1.5, "1"])
def test_a_round_that_is_none_is_an_error(round):
    with pytest.raises(ValueError, match="server-round must be a whole number at least 1"):
        lot(volatility(0), 0, 4, round)


def test_a_run_without_a_seed_is_an_error():
    with pytest.raises(ValueError, match="seed must be a whole number at least 0, got None"):
        lot(volatility(), 0, 4, 1)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_a_bad_seed_is_refused_at_once(seed):
    with pytest.raises(ValueError, match="seed must be a whole number at least 0"):
        volatility(seed)


@pytest.mark.parametrize("rates", [(2.0,), (0.5, -0.1), (float("nan"),)])
def test_bad_rates_are_refused_at_once(rates):
    with pytest.raises(ValueError, match="rates"):
        volatility(0, rates=rates)


@pytest.mark.parametrize("client", [4, -1])
def test_a_partition_out_of_range_is_an_error(client):
    with pytest.raises(ValueError, match="client must be a whole number between 0 and 3"):
        lot(volatility(0), client, 4, 1)
