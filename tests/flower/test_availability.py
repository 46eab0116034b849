"""Waiting for clients."""

import pytest
from fakes import (
    FakeClient,
    FakeGrid,
    federation,
    grid_with_names,
)
from helpers import client_names, cohort_strategy, gather, initial

from fedcohort.flower.availability import wait_for_clients, wait_for_enough
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.superlink import SuperLinkTrouble


def test_a_short_wait_is_long_enough_for_those_who_are_there(clock):
    start = clock.now
    cohort_strategy(wait=0.5).start(federation(clock, 3), initial(), num_rounds=1)
    assert clock.now - start < 1.0


def test_nodes_that_say_their_name_slowly_are_all_waited_for(clock):
    grid = federation(clock, 6)
    for place, client in enumerate(grid.clients.values()):
        client.query_delay = 3.0 - 0.5 * place
    strategy = cohort_strategy()
    strategy.start(grid, initial(), num_rounds=1)
    assert [client.name for client in strategy.registry.clients] == ["0", "1", "2", "3", "4", "5"]


def test_no_node_at_all_is_an_error_after_the_wait(clock):
    start = clock.now
    with pytest.raises(
        ValueError,
        match="wait must be long enough for a client to connect, got 10 s in which none did",
    ):
        cohort_strategy().start(FakeGrid(clock), initial())
    assert clock.now - start == pytest.approx(10.0, abs=0.3)


def test_fewer_nodes_than_the_cohort_is_an_error_after_the_wait(clock):
    with pytest.raises(
        ValueError, match="cohort_size must be at most 2, as many clients connected in 10 s, got 3"
    ):
        cohort_strategy().start(federation(clock, 2), initial())


@pytest.mark.parametrize(
    ("deadline", "warned"), [(1.0, True), (1.9, True), (2.5, False), (None, False)]
)
def test_a_deadline_shorter_than_the_start_up_gets_a_warning(clock, logged, deadline, warned):
    grid = federation(clock, 3)
    for client in grid.clients.values():
        client.query_delay = 2.0
    cohort_strategy(deadline=deadline).start(grid, initial(), num_rounds=1)
    told = [line for line in logged if "is shorter than" in line]
    assert len(told) == int(warned)
    assert all(
        line.startswith(f"WARNING: the deadline of {deadline:g} s is shorter than the 2.")
        for line in told
    )


@pytest.mark.parametrize(
    ("places", "wanted", "ends"), [(0, 2, 5.0), (0, 1, 5.0), (2, 2, 5.0), (2, 1, 0.1)]
)
def test_a_deaf_node_is_waited_for_until_the_time_is_up_unless_enough_of_those_announced_are_there(
    clock, places, wanted, ends
):
    grid, registry, start = grid_with_names(clock, "0", "1"), ClientRegistry(places), clock.now
    grid.clients[2].deaf = True
    wait_for_clients(registry, grid, wanted, 5.0)
    assert [client.name for client in registry.known] == ["0"]
    assert clock.now - start == pytest.approx(ends, abs=0.15)


@pytest.mark.parametrize("places", [0, 3])
def test_who_answers_first_does_not_decide_the_index(clock, places):
    grid, registry = FakeGrid(clock), ClientRegistry(places)
    for place, name in enumerate(["a", "b", "c"]):
        grid.join(place + 1, FakeClient(name, query_delay=0.5 - 0.2 * place))
    wait_for_clients(registry, grid, 3, 10.0)
    assert client_names(registry) == ["a", "b", "c"]


def test_enough_clients_are_waited_for_no_longer_than_it_takes(clock):
    grid, registry = gather(clock, "a")
    assert wait_for_enough(registry, grid, 1, 60.0) == 0.0
    grid.leave(1)
    start = clock.now
    with pytest.raises(ValueError, match="got 3 s after which 0 clients can be asked"):
        wait_for_enough(registry, grid, 1, 3.0)
    assert clock.now - start == pytest.approx(3.0, abs=0.26)
    clock.after(2.0, lambda: grid.join(2, FakeClient("a")))
    paused = wait_for_enough(registry, grid, 1, 60.0)
    assert registry.available == [0]
    assert paused == pytest.approx(2.25, abs=0.5)


def test_gathering_waits_no_longer_than_needed(clock):
    grid, registry, start = grid_with_names(clock, "a", "b"), ClientRegistry(), clock.now
    clock.after(2.0, lambda: grid.join(3, FakeClient("c")))
    wait_for_clients(registry, grid, 3, 60.0)
    assert client_names(registry) == ["a", "b", "c"]
    assert 2.0 <= clock.now - start <= 2.5
    assert registry.node_names.answer_times == pytest.approx([0.05] * 3, abs=0.11)


class BusyAtTheEnd(ClientRegistry):
    """A registry whose SuperLink takes longer than the last second of a wait."""

    def list_nodes(self, grid, patience=60.0):
        if patience < 1.0:
            raise SuperLinkTrouble("cannot list the nodes: no answer in time")
        return super().list_nodes(grid, patience)


def test_a_superlink_that_is_busy_when_the_wait_ends_costs_nobody_who_was_there(clock):
    """Found by chaos: with two clients gone for good, no resume survived a busy SuperLink."""
    registry = BusyAtTheEnd(3)
    wait_for_clients(registry, federation(clock, 2), wanted=3, seconds=10.0)
    assert len(registry.available) == 2


@pytest.mark.parametrize(("named", "warned"), [(False, True), (True, False)])
def test_clients_without_a_name_of_their_own_get_a_warning(clock, logged, named, warned):
    grid = federation(clock, 4)
    if not named:
        grid.clients[101].says = ""
        grid.clients[102].says = None
    cohort_strategy().start(grid, initial(), num_rounds=1)
    told = [line for line in logged if "have no name" in line]
    assert len(told) == int(warned)
    assert all(line.startswith("WARNING: 2 clients have no name, 101 for one") for line in told)


@pytest.mark.parametrize(("deadline", "warned"), [(5.0, True), (None, False)])
def test_a_deadline_in_the_simulation_engine_gets_a_warning(clock, logged, deadline, warned):
    grid = federation(clock, 4)
    grid.state = None  # as Flower's in-memory grid has
    cohort_strategy(deadline=deadline).start(grid, initial(), num_rounds=1)
    told = [line for line in logged if "the simulation engine queues clients" in line]
    assert len(told) == int(warned)
