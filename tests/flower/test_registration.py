"""Nodes of the simulation engine, named by the order in which they were registered."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from fakes import FakeClient, FakeGrid
from helpers import client_names
from remote import RemoteGrid

from fedcohort.flower.availability import wait_for_clients
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.registration import FEWEST_NODES, PROBES

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def engine(clock, size, kind=FakeGrid, microseconds=500_000, **changes):
    """Nodes with random ids that were registered in the order of their partitions.

    `changes` holds what clients say other than their partition, as `_3="x"`.
    """
    grid = kind(clock)
    ids = random.Random(7).sample(range(10**6, 10**7), size)
    for partition, node in enumerate(ids):
        grid.join(node, FakeClient(changes.get(f"_{partition}", str(partition))))
        time = BEGIN + timedelta(microseconds=microseconds * partition)
        grid.nodes[node].registered_at = time.isoformat()
    return grid, ids


def names_of(grid, size):
    registry = ClientRegistry(size)
    wait_for_clients(registry, grid, size, 30.0)
    return registry.node_names.names


@pytest.mark.parametrize("size", [FEWEST_NODES, 1000])
def test_a_few_nodes_are_asked_and_the_others_are_named_by_their_turn(clock, size):
    grid, ids = engine(clock, size)
    assert names_of(grid, size) == {node: str(turn) for turn, node in enumerate(ids)}
    assert len(grid.sent("query")) == PROBES
    asked = {message.metadata.dst_node_id for message in grid.sent("query")}
    assert {ids[0], ids[-1]} <= asked


def test_nodes_that_are_registered_while_others_are_asked_get_their_turn_too(clock):
    grid, ids = engine(clock, 200)
    late = {node: (grid.nodes.pop(node), grid.clients.pop(node)) for node in ids[120:]}

    def come():
        for node, (info, client) in late.items():
            grid.nodes[node] = info
            grid.clients[node] = client

    clock.after(0.3, come)
    assert names_of(grid, 200) == {node: str(turn) for turn, node in enumerate(ids)}
    assert len(grid.sent("query")) <= 2 * PROBES


@pytest.mark.parametrize("odd", ["7", ""])
def test_all_nodes_are_asked_if_one_is_not_who_its_turn_makes_it(clock, odd):
    grid, ids = engine(clock, 100, _99=odd)
    names = names_of(grid, 100)
    assert names[ids[99]] == odd
    assert len(grid.sent("query")) == 100


def test_all_nodes_are_asked_if_one_of_the_few_is_silent(clock):
    grid, ids = engine(clock, 100)
    grid.clients[ids[0]].deaf = True
    registry = ClientRegistry(100)
    wait_for_clients(registry, grid, 100, 90.0)
    assert len(registry.node_names.names) == 99


def test_all_nodes_are_asked_where_turns_mean_nothing(clock):
    few, _ = engine(clock, FEWEST_NODES - 1)
    names_of(few, FEWEST_NODES - 1)
    assert len(few.sent("query")) == FEWEST_NODES - 1

    at_once, _ = engine(clock, 100, microseconds=0)
    names_of(at_once, 100)
    assert len(at_once.sent("query")) == 100

    deployed, _ = engine(clock, 100, kind=RemoteGrid)
    registry = ClientRegistry(100)
    wait_for_clients(registry, deployed, 100, 30.0)
    assert len(deployed.sent("query")) == 100
    assert client_names(registry) == [str(index) for index in range(100)]
