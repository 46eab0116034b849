"""Who is who: indices, nodes, and clients that leave and return."""

import json
from math import inf

import pytest
from fakes import FakeClient, FakeGrid, grid_with_names
from helpers import client_names, gather, refresh_often
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort.flower.availability import wait_for_clients
from fedcohort.flower.clients import Client, ClientRegistry
from fedcohort.flower.verdicts import Verdict

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LOST = Verdict("lost", "no answer by the deadline")


def test_clients_are_placed_in_natural_order_whatever_their_nodes(clock):
    _, registry = gather(clock, "client-10", "client-2", "client-1")
    assert client_names(registry) == ["client-1", "client-2", "client-10"]
    assert [registry.node(index) for index in range(3)] == [3, 2, 1]


def test_a_number_is_the_index_where_a_place_is_kept(clock):
    _, registry = gather(clock, "3", "1", places=4)
    assert client_names(registry) == [None, "1", None, "3"]
    assert registry.available == [1, 3]
    assert [registry.name(index) for index in range(4)] == ["0", "1", "2", "3"]


def test_late_joiners_take_their_own_place_or_the_first_free_one_or_a_new_one(clock):
    grid, registry = gather(clock, "2", places=3)
    for node, name in enumerate(["x", "1", "0"], 10):
        grid.join(node, FakeClient(name))
        refresh_often(registry, grid, clock)
    assert client_names(registry) == ["x", "1", "2", "0"]


def test_a_client_that_leaves_and_comes_back_on_another_node_keeps_its_index(clock):
    grid, registry = gather(clock, "a", "b", "c")
    registry.record_verdict(1, 2, Verdict("arrived", examples=40.0))
    grid.leave(2)
    refresh_often(registry, grid, clock)
    assert registry.available == [0, 2]
    with pytest.raises(
        ValueError, match="client 1 must be there to be asked, got one that is away"
    ):
        registry.node(1)
    grid.join(77, FakeClient("b"))
    refresh_often(registry, grid, clock)
    assert registry.available == [0, 1, 2]
    assert registry.node(1) == 77
    assert registry.examples == [None, 40.0, None]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_two_nodes_with_one_name_the_later_one_is_asked_and_the_other_takes_over_when_it_leaves(
    clock, logged, order
):
    grid = FakeGrid(clock)
    for node in order:
        grid.join(node, FakeClient("a"), last_activated_at=f"2026-01-0{node}T00:00:00")
    registry = ClientRegistry()
    refresh_often(registry, grid, clock)
    assert client_names(registry) == ["a"]
    assert registry.node(0) == 2
    assert sum("claimed by nodes [1, 2]: 2 is asked" in line for line in logged) == 1
    grid.leave(2)
    refresh_often(registry, grid, clock)
    assert registry.node(0) == 1
    assert len(registry) == 1


def test_a_lost_client_is_not_asked_until_its_node_shows_life(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a"), online_until=clock.now + 60)
    registry = ClientRegistry()
    refresh_often(registry, grid, clock)
    registry.record_verdict(0, 1, LOST)
    refresh_often(registry, grid, clock)
    assert registry.available == []
    grid.beat(1, clock.now + 90)
    refresh_often(registry, grid, clock)
    assert registry.available == [0]


def test_a_lost_client_is_asked_again_on_a_new_node(clock):
    grid = FakeGrid(clock)
    until = clock.now + 60
    grid.join(1, FakeClient("a"), online_until=until)
    registry = ClientRegistry()
    refresh_often(registry, grid, clock)
    registry.record_verdict(0, 1, LOST)
    grid.join(
        2, FakeClient("a"), online_until=until
    )  # the same moment on purpose: the node alone is new
    refresh_often(registry, grid, clock)
    assert registry.available == [0]
    assert registry.node(0) == 2


@pytest.mark.parametrize("online", [None, 1.1e6, 1e12, inf])
def test_a_node_without_heartbeats_is_never_suspected(clock, online):
    grid, registry = FakeGrid(clock), ClientRegistry()
    grid.join(1, FakeClient("a"), online_until=0.0 if online is None else clock.now + online)
    wait_for_clients(registry, grid, 1, 10.0)
    registry.record_verdict(0, 1, LOST)
    refresh_often(registry, grid, clock)
    assert registry.available == [0]


def test_a_client_that_was_lost_on_a_node_it_has_left_in_the_round_is_asked_again(clock):
    grid, registry = FakeGrid(clock), ClientRegistry()
    grid.join(1, FakeClient("a"), online_until=clock.now + 60)
    wait_for_clients(registry, grid, 1, 10.0)
    grid.leave(1)
    grid.join(2, FakeClient("a"), online_until=clock.now + 60)
    refresh_often(registry, grid, clock)
    registry.record_verdict(0, 1, LOST)
    registry.refresh(grid)
    assert registry.available == [0]
    assert registry.node(0) == 2


def test_what_came_of_a_place_that_nobody_has_taken_is_not_noted():
    registry = ClientRegistry(1)
    registry.record_verdict(0, 1, Verdict("arrived", examples=3.0))
    assert registry.examples == [None]


@pytest.mark.parametrize("status", ["arrived", "stopped", "failed", "rejected"])
def test_whoever_says_something_stays_available(clock, status):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a"), online_until=clock.now + 60)
    registry = ClientRegistry()
    refresh_often(registry, grid, clock)
    registry.record_verdict(0, 1, Verdict(status, examples=3.0))
    refresh_often(registry, grid, clock)
    assert registry.available == [0]


def test_looks_between_pulls_are_rare(clock):
    grid, registry = grid_with_names(clock, "a"), ClientRegistry()
    for _ in range(100):
        registry.refresh_if_due(grid)
        clock.sleep(0.02)  # two seconds in all
    assert grid.calls <= 3 * (2 + 2)  # get_nodes, push, pull


def test_the_state_comes_back_through_json(clock):
    grid, registry = gather(clock, "b", "3", places=5)
    registry.record_verdict(0, 1, Verdict("arrived", examples=12.0))
    restored = ClientRegistry()
    restored.load_state_dict(json.loads(json.dumps(registry.state_dict())))
    assert restored.available == []
    assert client_names(restored) == client_names(registry) == ["b", None, None, "3", None]
    assert restored.examples == [12.0, None, None, None, None]
    grid.join(9, FakeClient("4"))
    refresh_often(restored, grid, clock)
    assert client_names(restored) == ["b", None, None, "3", "4"]
    assert restored.available == [0, 3, 4]


ODD = [
    "²",
    "٣",
    "٣٤",
    "-1",
    "1e3",
    "9" * 18,
    "9" * 19,
    "9" * 200,
    "a" * 200,
    "007",
    "7",
    " 7",
    "🦊",
    "1²",
    "²1",
]


@pytest.mark.parametrize("places", [0, 3])
def test_odd_names_are_names_like_others(clock, places):
    _, registry = gather(clock, *ODD, places=places)
    assert sorted(client.name for client in registry.known) == sorted(ODD)
    assert len(registry) == len(ODD)
    assert sorted(registry.available) == list(range(len(ODD)))


NATURAL = [
    "1",
    "1e3",
    "1e20",
    "2",
    "10",
    "12",
    "9" * 30,
    "a",
    "a2",
    "a2b1",
    "a2b10",
    "a10",
    "b",
    "²",
    "٣",
]


@QUICK
@given(order=st.permutations(NATURAL))
def test_numbers_in_names_are_compared_as_numbers_however_long(clock, order):
    _, registry = gather(clock, *order)
    assert client_names(registry) == NATURAL


def test_names_that_are_the_same_number_have_an_order_that_is_the_same_in_every_process(clock):
    sevens = ["0" * zeros + "7" for zeros in range(8)]
    _, registry = gather(clock, *sevens)
    assert client_names(registry) in (sorted(sevens), sorted(sevens, key=len))


def test_a_long_number_does_not_reserve_a_place_of_that_number(clock):
    _, registry = gather(clock, "999999999999", places=2)
    assert client_names(registry) == ["999999999999", None]


EVENTS = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.sampled_from(["a", "b", "0", "1", "2", "10", "", "٣", "x-9", "x-10"]),
        st.booleans(),
    ),
    max_size=25,
)


@QUICK
@given(events=EVENTS, places=st.integers(0, 4), authenticated=st.booleans())
def test_an_index_never_changes_and_no_two_clients_are_on_one_node(
    clock, events, places, authenticated
):
    grid, registry, seen = FakeGrid(clock), ClientRegistry(places), {}
    fresh = iter(range(1, 1000))
    on = {}
    for slot, name, quick in events:
        if slot in on:
            grid.leave(on.pop(slot))
        else:
            on[slot] = next(fresh)
            grid.join(on[slot], FakeClient(name), name=name if authenticated else "")
        if quick:
            registry.refresh(grid)
        else:
            refresh_often(registry, grid, clock)
        for index, client in enumerate(registry.clients):
            if client:
                assert seen.setdefault(client.name, index) == index
        nodes = [client.node for client in registry.known if client.node is not None]
        assert len(set(nodes)) == len(nodes)
        assert set(nodes) <= set(grid.nodes)
        assert len({client.name for client in registry.known}) == len(registry.known)
    refresh_often(registry, grid, clock)
    claimed = {grid.clients[node].says or str(node) for node in grid.nodes}
    assert {registry.name(index) for index in registry.available} == claimed


class CountingList(list):
    """A list that counts how often an element is read."""

    reads = 0

    def __getitem__(self, place):
        self.reads += 1
        return super().__getitem__(place)

    def __iter__(self):
        for client in super().__iter__():
            self.reads += 1
            yield client


@pytest.mark.parametrize("places", [0, 2000])
@pytest.mark.parametrize("name", ["{}", "client-{}"])
def test_an_index_is_found_without_a_look_at_every_other(clock, places, name):
    registry = ClientRegistry(places)
    registry.clients = CountingList(registry.clients)
    for number in range(2000):
        registry._add(Client(name.format(number)))
    assert registry.clients.reads <= 5 * 2000
    assert client_names(registry) == [name.format(number) for number in range(2000)]


def test_thousands_of_clients_cost_a_few_log_lines(clock, logged):
    grid, registry = grid_with_names(clock, *map(str, range(1000))), ClientRegistry()
    refresh_often(registry, grid, clock)
    assert len(registry) == 1000
    assert len(logged) <= 10


@pytest.mark.parametrize(("nodes", "most"), [(1, 62), (300, 22), (3000, 4)])
def test_many_nodes_are_listed_less_often(clock, nodes, most):
    grid, registry = grid_with_names(clock, *map(str, range(nodes))), ClientRegistry()
    for _ in range(600):  # a minute
        registry.refresh_if_due(grid)
        clock.sleep(0.1)
    assert 2 <= grid.listings <= most
