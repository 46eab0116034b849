"""Bounds that follow what clients returned in earlier rounds."""

from math import inf

import numpy as np
import pytest
from fakes import federation, learner, record, returned
from flwr.serverapp.strategy import FedAvg
from helpers import cohort_strategy, initial

from fedcohort.flower import Limits
from fedcohort.flower.history import MOST_CLIENTS, RecentMedian, ReplyHistory
from fedcohort.flower.layouts import Layout


def test_the_bound_is_a_multiple_of_the_median_of_the_clients():
    recent = RecentMedian()
    recent.add({"a": 1.0, "b": 3.0, "c": 9.0}, inf)
    assert recent.bound(10.0, {}) == 30.0
    assert recent.bound(inf, {}) == inf


def test_a_client_that_is_asked_often_counts_once():
    recent = RecentMedian()
    for _ in range(50):
        recent.add({"a": 1000.0}, inf)
    assert recent.bound(10.0, {}) == inf, "one client defines nothing"
    recent.add({"b": 1.0, "c": 2.0}, inf)
    assert recent.bound(10.0, {}) == 20.0


@pytest.mark.parametrize("number", [0, 1, 2])
def test_fewer_than_three_clients_define_no_bound(number):
    values = {str(place): 1.0 for place in range(number)}
    recent = RecentMedian()
    recent.add(values, inf)
    assert recent.bound(10.0, values) == inf


def test_if_the_median_is_zero_there_is_no_bound():
    recent = RecentMedian()
    recent.add({"a": 0.0, "b": 0.0, "c": 1.0}, inf)
    assert recent.bound(10.0, {}) == inf


def test_a_median_below_the_least_counts_as_the_least():
    recent = RecentMedian()
    assert recent.bound(10.0, {"a": 0.0, "b": 0.0}, least=1.0) == inf, "two clients have no median"
    assert recent.bound(10.0, {"a": 0.0, "b": 0.0, "c": 9.0}, least=1.0) == 10.0
    assert recent.bound(10.0, {"a": 2.0, "b": 3.0, "c": 9.0}, least=1.0) == 30.0


def test_steps_that_grow_for_most_clients_together_are_no_offence():
    recent = RecentMedian()
    recent.add({"a": 1e-9, "b": 1e-9, "c": 1e-9}, inf)
    assert recent.bound(10.0, {"a": 1.0, "b": 2.0, "c": 3.0}) == 20.0
    assert recent.bound(10.0, {"a": 1e-9, "b": 1e-9, "c": 3.0}) == pytest.approx(1e-8)


def test_values_beyond_the_bound_are_remembered_as_the_bound():
    recent = RecentMedian()
    recent.add({"a": 1.0, "b": 1e300, "c": 1e300}, 5.0)
    assert recent.values == {"a": 1.0, "b": 5.0, "c": 5.0}


def test_only_the_clients_accepted_last_are_remembered():
    recent = RecentMedian()
    for number in range(MOST_CLIENTS + 7):
        recent.add({str(number): float(number)}, inf)
    assert list(recent.values) == [str(number) for number in range(7, MOST_CLIENTS + 7)]


def test_the_history_comes_back_from_its_state_and_an_old_checkpoint_has_none():
    history, again = ReplyHistory(), ReplyHistory()
    history.norms.add({"a": 1.0, "b": 2.0}, inf)
    history.training.usual = Layout("arrays", "metrics", (("loss", -1), ("per-class", 3)))
    again.load_state_dict(history.state_dict())
    assert again.norms.values == {"a": 1.0, "b": 2.0}
    assert again.training.usual == history.training.usual
    assert again.evaluation.usual is None
    again.load_state_dict({})
    assert (again.norms.values, again.training.usual) == ({}, None)


def mover(number, far, examples=10):
    """A client that moves the first number of the model by so much."""
    client = learner(number)

    def train(message):
        sent = {name: array.numpy() for name, array in message.content["arrays"].items()}
        sent["b"] = sent["b"] + far
        return returned(record(**sent), {"num-examples": examples})

    client.train = train
    return client


def statuses(clock, clients, limits=None):
    grid = federation(clock, 0)
    for number, client in enumerate(clients):
        grid.join(100 + number, client)
    run = cohort_strategy(FedAvg(fraction_evaluate=0.0), cohort_size=len(clients), limits=limits)
    rows = []
    run.training.journal.write = rows.append
    begin = run.training.begin

    def begin_with_rows(*given):
        begin(*given)
        run.training.journal.write = rows.append

    run.training.begin = begin_with_rows
    run.start(grid, initial(), 1)
    return [asked["status"] for asked in rows[0]["asked"]]


FAR = 12.5  # twice 6.25, without rounding


@pytest.mark.parametrize(
    ("far", "status"), [(FAR, "arrived"), (np.nextafter(FAR + 0.25, 99), "rejected")]
)
def test_a_model_at_the_bound_of_the_median_counts_and_one_beyond_does_not(clock, far, status):
    """The other two move by 6.25, and the model's number is 0.25."""
    clients = [mover(0, 6.25), mover(1, 6.25), mover(2, far)]
    limits = Limits(norm_factor=2.0)
    assert statuses(clock, clients, limits) == ["arrived", "arrived", status]
    assert statuses(clock, clients, Limits(norm_factor=inf)) == ["arrived"] * 3


@pytest.mark.parametrize(("examples", "status"), [(30, "arrived"), (31, "rejected")])
def test_examples_at_the_bound_of_the_median_count_and_more_do_not(clock, examples, status):
    clients = [mover(0, 1.0), mover(1, 1.0), mover(2, 1.0, examples)]
    limits = Limits(examples_factor=3.0)
    assert statuses(clock, clients, limits) == ["arrived", "arrived", status]


def test_counters_have_no_part_in_the_bound_of_the_median(clock):
    """A client with a thousand times as many batches is honest."""
    grid = federation(clock, 3)
    for number, steps in enumerate([1, 1, 1_000_000]):
        grid.clients[100 + number].train = lambda message, steps=steps: returned(
            record(w=np.ones(2), steps=np.array(steps)), {"num-examples": 3}
        )
    run = cohort_strategy(FedAvg(fraction_evaluate=0.0))
    run.start(grid, record(w=np.zeros(2), steps=np.array(0)), 2)
    assert run.training.totals.arrived == 6


def test_of_an_even_number_of_clients_the_lower_of_the_middle_two_counts():
    recent = RecentMedian()
    recent.add({"a": 1.0, "b": 2.0, "c": 50.0, "d": 60.0}, inf)
    assert recent.bound(10.0, {}) == 20.0
