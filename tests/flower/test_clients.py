import json
from math import inf

import pytest
from fakes import FakeClient, FakeGrid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort.flower.availability import wait_for_any_client, wait_for_clients
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.identity import QUERY_TTL
from fedcohort.flower.verdicts import Verdict

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LOST = Verdict("lost", "no answer by the deadline")


def grid_of(clock, *names):
    """Unauthenticated nodes 1, 2, … whose clients say these names."""
    grid = FakeGrid(clock)
    for place, name in enumerate(names):
        grid.join(place + 1, FakeClient(name))
    return grid


def gathered(clock, *names, places=0):
    grid, registry = grid_of(clock, *names), ClientRegistry(places)
    wait_for_clients(registry, grid, len(names), 10.0)
    return grid, registry


def looked(registry, grid, clock):
    """After enough looks to notice a newcomer and to hear its name."""
    for _ in range(3):
        registry.refresh(grid)
        clock.sleep(0.5)
    registry.refresh(grid)


def names(registry):
    return [client.name if client else None for client in registry.clients]


def test_clients_are_placed_in_natural_order_whatever_their_nodes(clock):
    _, registry = gathered(clock, "client-10", "client-2", "client-1")
    assert names(registry) == ["client-1", "client-2", "client-10"]
    assert [registry.node(index) for index in range(3)] == [3, 2, 1]


def test_a_number_is_the_index_where_a_place_is_kept(clock):
    _, registry = gathered(clock, "3", "1", places=4)
    assert names(registry) == [None, "1", None, "3"]
    assert registry.available == [1, 3]
    assert [registry.name(index) for index in range(4)] == ["0", "1", "2", "3"]


def test_late_joiners_take_their_own_place_or_the_first_free_one_or_a_new_one(clock):
    grid, registry = gathered(clock, "2", places=3)
    for node, name in enumerate(["x", "1", "0"], 10):
        grid.join(node, FakeClient(name))
        looked(registry, grid, clock)
    assert names(registry) == ["x", "1", "2", "0"]


def test_a_client_that_leaves_and_comes_back_on_another_node_keeps_its_index(clock):
    grid, registry = gathered(clock, "a", "b", "c")
    registry.record_verdict(1, 2, Verdict("arrived", examples=40.0))
    grid.leave(2)
    looked(registry, grid, clock)
    assert registry.available == [0, 2]
    with pytest.raises(
        ValueError, match="client 1 must be there to be asked, got one that is away"
    ):
        registry.node(1)
    grid.join(77, FakeClient("b"))
    looked(registry, grid, clock)
    assert registry.available == [0, 1, 2]
    assert registry.node(1) == 77
    assert registry.examples == [None, 40.0, None]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_two_nodes_with_one_name_the_later_one_is_asked_and_the_other_takes_over_when_it_leaves(
    clock, said, order
):
    grid = FakeGrid(clock)
    for node in order:
        grid.join(node, FakeClient("a"), last_activated_at=f"2026-01-0{node}T00:00:00")
    registry = ClientRegistry()
    looked(registry, grid, clock)
    assert names(registry) == ["a"]
    assert registry.node(0) == 2
    assert sum("claimed by nodes [1, 2]: 2 is asked" in line for line in said) == 1
    grid.leave(2)
    looked(registry, grid, clock)
    assert registry.node(0) == 1
    assert len(registry) == 1


def test_a_lost_client_is_not_asked_until_its_node_shows_life(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a"), online_until=clock.now + 60)
    registry = ClientRegistry()
    looked(registry, grid, clock)
    registry.record_verdict(0, 1, LOST)
    looked(registry, grid, clock)
    assert registry.available == []
    grid.beat(1, clock.now + 90)
    looked(registry, grid, clock)
    assert registry.available == [0]


def test_a_lost_client_is_asked_again_on_a_new_node(clock):
    grid = FakeGrid(clock)
    until = clock.now + 60
    grid.join(1, FakeClient("a"), online_until=until)
    registry = ClientRegistry()
    looked(registry, grid, clock)
    registry.record_verdict(0, 1, LOST)
    grid.join(
        2, FakeClient("a"), online_until=until
    )  # the same moment on purpose: the node alone is new
    looked(registry, grid, clock)
    assert registry.available == [0]
    assert registry.node(0) == 2


@pytest.mark.parametrize("online", [None, 1.1e6, 1e12, inf])
def test_a_node_without_heartbeats_is_never_suspected(clock, online):
    grid, registry = FakeGrid(clock), ClientRegistry()
    grid.join(1, FakeClient("a"), online_until=0.0 if online is None else clock.now + online)
    wait_for_clients(registry, grid, 1, 10.0)
    registry.record_verdict(0, 1, LOST)
    looked(registry, grid, clock)
    assert registry.available == [0]


def test_a_client_that_was_lost_on_a_node_it_has_left_in_the_round_is_asked_again(clock):
    grid, registry = FakeGrid(clock), ClientRegistry()
    grid.join(1, FakeClient("a"), online_until=clock.now + 60)
    wait_for_clients(registry, grid, 1, 10.0)
    grid.leave(1)
    grid.join(2, FakeClient("a"), online_until=clock.now + 60)
    looked(registry, grid, clock)
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
    looked(registry, grid, clock)
    registry.record_verdict(0, 1, Verdict(status, examples=3.0))
    looked(registry, grid, clock)
    assert registry.available == [0]


def test_an_app_that_does_not_know_the_question_is_known_by_its_node(clock, said):
    grid = FakeGrid(clock)
    grid.join(123, FakeClient(None))
    registry = ClientRegistry()
    wait_for_clients(registry, grid, 1, 10.0)
    assert names(registry) == ["123"]
    assert any(
        "node 123 does not say which client it is" in line and "no query function" in line
        for line in said
    )
    looked(registry, grid, clock)
    assert len(grid.sent("query")) == 1  # and is not asked again


def test_a_client_without_a_name_is_known_by_its_node(clock):
    grid, registry = gathered(clock, "")
    assert names(registry) == ["1"]
    assert registry.node(0) == 1
    assert grid.left_behind == []


def test_a_question_that_expired_is_asked_again(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a", deaf=True))
    registry = ClientRegistry()
    registry.refresh(grid)
    clock.sleep(QUERY_TTL - 1)
    grid.clients[1] = FakeClient("a")
    looked(registry, grid, clock)
    assert len(grid.sent("query")) == 2  # not before it has expired, and then at once
    looked(registry, grid, clock)
    assert names(registry) == ["a"]
    assert len(grid.sent("query")) == 2
    assert registry.node_names.queries == {}


def test_a_question_lives_for_a_minute_and_is_asked_once_in_it(clock):
    grid, registry = grid_of(clock, "a"), ClientRegistry()
    grid.clients[1].query_delay = 20.0
    for _ in range(25):
        registry.refresh(grid)
        clock.sleep(1.0)
    assert [message.metadata.ttl for message in grid.sent("query")] == [60.0]
    assert names(registry) == ["a"]


@pytest.mark.parametrize(("silent", "takes"), [(False, 0.25), (True, 60.0)])
def test_at_the_end_open_questions_are_waited_for_until_they_expire(clock, silent, takes):
    grid, registry, start = grid_of(clock, "a"), ClientRegistry(), clock.now
    grid.clients[1].deaf = silent
    registry.refresh(grid)
    assert len(grid.left_behind) == 1
    registry.node_names.close(grid)
    assert registry.node_names.queries == {}
    assert grid.left_behind == []
    assert clock.now - start == pytest.approx(takes, abs=0.3)


def test_a_registry_without_open_questions_closes_at_once(clock):
    grid, registry = gathered(clock, "a")
    calls, start = grid.calls, clock.now
    registry.node_names.close(grid)
    assert (grid.calls, clock.now) == (calls, start)


def test_a_refused_question_is_asked_again(clock):
    grid, registry = grid_of(clock, "a"), ClientRegistry()
    grid.refuse = lambda message: True
    registry.refresh(grid)
    assert registry.node_names.queries == {}
    grid.refuse = lambda message: False
    looked(registry, grid, clock)
    assert names(registry) == ["a"]


@pytest.mark.parametrize(
    ("places", "wanted", "ends"), [(0, 2, 5.0), (0, 1, 5.0), (2, 2, 5.0), (2, 1, 0.1)]
)
def test_a_deaf_node_is_waited_for_until_the_time_is_up_unless_enough_of_those_announced_are_there(
    clock, places, wanted, ends
):
    grid, registry, start = grid_of(clock, "0", "1"), ClientRegistry(places), clock.now
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
    assert names(registry) == ["a", "b", "c"]


def test_a_registered_node_is_not_asked_and_not_waited_for(clock):
    grid, registry, start = FakeGrid(clock), ClientRegistry(), clock.now
    for place, name in enumerate(["b", "a"]):
        grid.join(place + 1, FakeClient(name, deaf=True), name=name)
    wait_for_clients(registry, grid, 2, 60.0)
    assert names(registry) == ["a", "b"]
    assert clock.now == start
    assert grid.sent("query") == []


def test_somebody_is_waited_for_no_longer_than_it_takes(clock):
    grid, registry = gathered(clock, "a")
    wait_for_any_client(registry, grid, 60.0)
    grid.leave(1)
    registry.refresh(grid)
    start = clock.now
    wait_for_any_client(registry, grid, 3.0)
    assert clock.now - start == pytest.approx(3.0, abs=0.26)
    clock.after(2.0, lambda: grid.join(2, FakeClient("a")))
    wait_for_any_client(registry, grid, 60.0)
    assert registry.available == [0]
    assert clock.now - start == pytest.approx(5.25, abs=0.5)


def test_gathering_waits_no_longer_than_needed(clock):
    grid, registry, start = grid_of(clock, "a", "b"), ClientRegistry(), clock.now
    clock.after(2.0, lambda: grid.join(3, FakeClient("c")))
    wait_for_clients(registry, grid, 3, 60.0)
    assert names(registry) == ["a", "b", "c"]
    assert 2.0 <= clock.now - start <= 2.5
    assert registry.node_names.answer_times == pytest.approx([0.05] * 3, abs=0.11)


def test_looks_between_pulls_are_rare(clock):
    grid, registry = grid_of(clock, "a"), ClientRegistry()
    for _ in range(100):
        registry.refresh_if_due(grid)
        clock.sleep(0.02)  # two seconds in all
    assert grid.calls <= 3 * (2 + 2)  # get_nodes, push, pull


def test_an_authenticated_name_counts_more_than_what_the_client_says(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("b"), name="a")
    registry = ClientRegistry()
    looked(registry, grid, clock)
    assert names(registry) == ["a"]


@pytest.mark.parametrize("claims_first", [True, False])
def test_nobody_takes_the_name_that_another_node_is_registered_under(clock, said, claims_first):
    grid, registry = FakeGrid(clock), ClientRegistry()
    nodes = [(1, "a", "2026-01-01"), (2, "", "2026-01-02")]
    for node, name, since in reversed(nodes) if claims_first else nodes:
        grid.join(node, FakeClient("a"), name=name, last_activated_at=since)
        looked(registry, grid, clock)
    assert names(registry) == ["a"]
    assert registry.node(0) == 1
    assert sum("client a is claimed by nodes [2, 1]: 1 is asked" in line for line in said) == 1


def test_an_authenticated_node_is_known_without_an_answer(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("x", deaf=True), name="a")
    registry = ClientRegistry()
    registry.refresh(grid)
    assert registry.available == [0]


def test_a_node_that_leaves_before_it_says_who_it_is_is_forgotten(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a", query_delay=2.0))
    registry = ClientRegistry()
    registry.refresh(grid)
    assert len(registry.node_names.queries) == 1
    grid.leave(1)
    looked(registry, grid, clock)
    assert len(registry) == 0
    assert registry.node_names.queries == {}


def test_the_state_comes_back_through_json(clock):
    grid, registry = gathered(clock, "b", "3", places=5)
    registry.record_verdict(0, 1, Verdict("arrived", examples=12.0))
    restored = ClientRegistry()
    restored.load_state_dict(json.loads(json.dumps(registry.state_dict())))
    assert restored.available == []
    assert names(restored) == names(registry) == ["b", None, None, "3", None]
    assert restored.examples == [12.0, None, None, None, None]
    grid.join(9, FakeClient("4"))
    looked(restored, grid, clock)
    assert names(restored) == ["b", None, None, "3", "4"]
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
    _, registry = gathered(clock, *ODD, places=places)
    assert sorted(client.name for client in registry.known) == sorted(ODD)
    assert len(registry) == len(ODD)
    assert sorted(registry.available) == list(range(len(ODD)))


@pytest.mark.parametrize(
    "name", ["9" * 201, "9" * 5000, "a" * 100_000, "\n", "\x00", "\x1b[31mred", "1\n2"]
)
def test_a_name_that_is_too_long_or_cannot_be_printed_is_none(clock, name):
    _, registry = gathered(clock, name)
    assert names(registry) == ["1"]


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
    _, registry = gathered(clock, *order)
    assert names(registry) == NATURAL


def test_names_that_are_the_same_number_have_an_order_that_is_the_same_in_every_process(clock):
    sevens = ["0" * zeros + "7" for zeros in range(8)]
    _, registry = gathered(clock, *sevens)
    assert names(registry) in (sorted(sevens), sorted(sevens, key=len))


def test_a_long_number_does_not_reserve_a_place_of_that_number(clock):
    _, registry = gathered(clock, "999999999999", places=2)
    assert names(registry) == ["999999999999", None]


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
            looked(registry, grid, clock)
        for index, client in enumerate(registry.clients):
            if client:
                assert seen.setdefault(client.name, index) == index
        nodes = [client.node for client in registry.known if client.node is not None]
        assert len(set(nodes)) == len(nodes)
        assert set(nodes) <= set(grid.nodes)
        assert len({client.name for client in registry.known}) == len(registry.known)
    looked(registry, grid, clock)
    claimed = {grid.clients[node].says or str(node) for node in grid.nodes}
    assert {registry.name(index) for index in registry.available} == claimed
