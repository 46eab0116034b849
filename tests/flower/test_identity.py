"""How nodes say which client they are."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from fakes import FakeClient, FakeGrid, grid_with_names
from flwr.app import Error
from helpers import client_names, gather, refresh_often

from fedcohort.flower import departures
from fedcohort.flower.availability import wait_for_clients
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.identity import QUERY_TTL, NodeNames


def test_an_app_that_does_not_know_the_question_is_known_by_its_node(clock, logged):
    grid = FakeGrid(clock)
    grid.join(123, FakeClient(None))
    registry = ClientRegistry()
    wait_for_clients(registry, grid, 1, 10.0)
    assert client_names(registry) == ["123"]
    assert any(
        "node 123 does not say which client it is" in line and "no query function" in line
        for line in logged
    )
    refresh_often(registry, grid, clock)
    assert len(grid.sent("query")) == 1  # and is not asked again


@dataclass
class BrokenAtFirst(FakeClient):
    """Answers its first queries with an error, as Flower does for an app that does not run."""

    code: int = 8
    breaks: int = 1

    def answer(self, message):
        if message.metadata.message_type.startswith("query") and self.breaks:
            self.breaks -= 1
            return 0.05, Error(self.code, "Traceback\nImportError: no such module")
        return super().answer(message)


@pytest.mark.parametrize("code", [1, 8])
def test_an_app_that_did_not_run_when_it_was_asked_is_asked_again(clock, logged, code):
    """Client a is known, and restarts on node 2; its app fails once to load, or crashes."""
    grid, registry = gather(clock, "a")
    grid.leave(1)
    grid.join(2, BrokenAtFirst("a", code=code))
    refresh_often(registry, grid, clock)
    assert client_names(registry) == ["a"]
    assert registry.node(0) == 2
    assert [message.metadata.dst_node_id for message in grid.sent("query")] == [1, 2, 2]
    assert any(line.startswith("INFO: node 2 could not say which client it is") for line in logged)


def test_an_app_that_crashes_again_and_again_is_asked_less_and_less_often(clock):
    grid, registry, start = FakeGrid(clock), ClientRegistry(), clock.now
    grid.join(1, BrokenAtFirst("a", breaks=1000))
    while clock.now < start + 500.0:
        registry.refresh(grid)
        clock.sleep(1.0)
    assert client_names(registry) == []
    # at 0 s, at once again, and then after 60, 120 and 240 s
    assert len(grid.sent("query")) == 5


def test_a_client_without_a_name_is_known_by_its_node(clock):
    grid, registry = gather(clock, "")
    assert client_names(registry) == ["1"]
    assert registry.node(0) == 1
    assert grid.left_behind == []


def test_a_question_that_expired_is_asked_again(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a", deaf=True))
    registry = ClientRegistry()
    registry.refresh(grid)
    clock.sleep(QUERY_TTL - 1)
    grid.clients[1] = FakeClient("a")
    refresh_often(registry, grid, clock)
    assert len(grid.sent("query")) == 2  # not before it has expired, and then at once
    refresh_often(registry, grid, clock)
    assert client_names(registry) == ["a"]
    assert len(grid.sent("query")) == 2
    assert registry.node_names.queries == {}


def test_a_question_lives_for_a_minute_and_is_asked_once_in_it(clock):
    grid, registry = grid_with_names(clock, "a"), ClientRegistry()
    grid.clients[1].query_delay = 20.0
    for _ in range(25):
        registry.refresh(grid)
        clock.sleep(1.0)
    assert [message.metadata.ttl for message in grid.sent("query")] == [60.0]
    assert client_names(registry) == ["a"]


@pytest.mark.parametrize(("silent", "takes"), [(False, 0.25), (True, 5.0)])
def test_at_the_end_open_questions_are_waited_for_a_few_seconds(clock, logged, silent, takes):
    grid, registry, start = grid_with_names(clock, "a"), ClientRegistry(), clock.now
    grid.clients[1].deaf = silent
    registry.refresh(grid)
    assert len(grid.left_behind) == 1
    registry.node_names.close(grid)
    assert clock.now - start == pytest.approx(takes, abs=0.3)
    assert bool(registry.node_names.queries) == silent
    assert silent == any("1 nodes never said which client they are" in line for line in logged)


def test_a_registry_without_open_questions_closes_at_once(clock):
    grid, registry = gather(clock, "a")
    calls, start = grid.calls, clock.now
    registry.node_names.close(grid)
    assert (grid.calls, clock.now) == (calls, start)


def test_a_refused_question_is_asked_again(clock):
    grid, registry = grid_with_names(clock, "a"), ClientRegistry()
    grid.refuse = lambda message: True
    registry.refresh(grid)
    assert registry.node_names.queries == {}
    grid.refuse = lambda message: False
    refresh_often(registry, grid, clock)
    assert client_names(registry) == ["a"]


def test_a_registered_node_is_not_asked_and_not_waited_for(clock):
    grid, registry, start = FakeGrid(clock), ClientRegistry(), clock.now
    for place, name in enumerate(["b", "a"]):
        grid.join(place + 1, FakeClient(name, deaf=True), name=name)
    wait_for_clients(registry, grid, 2, 60.0)
    assert client_names(registry) == ["a", "b"]
    assert clock.now == start
    assert grid.sent("query") == []


def test_an_authenticated_name_counts_more_than_what_the_client_says(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("b"), name="a")
    registry = ClientRegistry()
    refresh_often(registry, grid, clock)
    assert client_names(registry) == ["a"]


@pytest.mark.parametrize("claims_first", [True, False])
def test_nobody_takes_the_name_that_another_node_is_registered_under(clock, logged, claims_first):
    grid, registry = FakeGrid(clock), ClientRegistry()
    nodes = [(1, "a", "2026-01-01"), (2, "", "2026-01-02")]
    for node, name, since in reversed(nodes) if claims_first else nodes:
        grid.join(node, FakeClient("a"), name=name, last_activated_at=since)
        refresh_often(registry, grid, clock)
    assert client_names(registry) == ["a"]
    assert registry.node(0) == 1
    assert sum("client a is claimed by nodes [2, 1]: 1 is asked" in line for line in logged) == 1


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
    refresh_often(registry, grid, clock)
    assert len(registry) == 0
    assert registry.node_names.queries == {}


@pytest.mark.parametrize(
    "name", ["9" * 201, "9" * 5000, "a" * 100_000, "\n", "\x00", "\x1b[31mred", "1\n2"]
)
def test_a_name_that_is_too_long_or_cannot_be_printed_is_none(clock, name):
    _, registry = gather(clock, name)
    assert client_names(registry) == ["1"]


def test_a_silent_node_is_asked_again_at_once_and_then_after_longer_and_longer_times(clock):
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a", deaf=True))
    registry, begin = ClientRegistry(), clock.now
    times = []
    while clock.now < begin + 12_000:
        asked = len(grid.sent("query"))
        registry.refresh(grid)
        if len(grid.sent("query")) > asked:
            times.append(clock.now - begin)
        clock.sleep(1.0)
    # A query lives for 60 s. Then follow pauses of 0, 60, 120, 240, ... and at most 3600 s.
    pauses = [0, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == pytest.approx([60 + pause for pause in pauses], abs=2.0)


def test_a_node_that_restarts_for_ever_does_not_fill_the_memory(clock, monkeypatch):
    """Its client-id stays, and each restart has a new node id; another node has the same name."""
    monkeypatch.setattr(departures, "MOST_GONE", 10)
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("a"))
    grid.join(2, FakeClient("b"))
    registry = ClientRegistry()
    for node in range(100, 200):
        grid.join(node, FakeClient("a"))
        refresh_often(registry, grid, clock)
        assert registry.node(0) == node
        grid.leave(node)
    names = registry.node_names
    assert len(names.names) <= 10 + 2 + 1
    assert names.properties == {}, "nobody needs them"
    assert client_names(registry) == ["a", "b"]
    assert len(registry._reported_rivals) == 1


def test_silent_nodes_that_have_left_are_forgotten(clock, monkeypatch):
    monkeypatch.setattr(departures, "MOST_GONE", 10)
    grid = FakeGrid(clock)
    names = NodeNames()
    for node in range(100, 130):
        grid.join(node, FakeClient("a", deaf=True))
        names.refresh(grid, grid.nodes)
        clock.sleep(61.0)
        names.refresh(grid, grid.nodes)
        grid.leave(node)
    names.refresh(grid, grid.nodes)
    assert len(names._silences) <= 10
    assert len(names._ask_again_at) <= 10


def test_a_large_federation_that_is_away_for_one_listing_is_not_forgotten(clock, monkeypatch):
    monkeypatch.setattr(departures, "MOST_GONE", 3)
    grid = FakeGrid(clock)
    for node in range(8):
        grid.join(node + 1, FakeClient(f"client-{node}"))
    registry = ClientRegistry()
    refresh_often(registry, grid, clock)
    asked = len(grid.sent("query"))
    nodes = dict(grid.nodes)
    names = registry.node_names
    names.refresh(grid, {})
    names.refresh(grid, nodes)
    assert len(names.names) == 8
    assert len(grid.sent("query")) == asked

    # As many as were there at once may be away; of more, those that left first are forgotten.
    for node in nodes:
        grid.leave(node)
    for node in range(100, 110):
        grid.join(node, FakeClient("restarts"))
        refresh_often(registry, grid, clock)
        grid.leave(node)
    registry.refresh(grid)
    assert list(names.names) == list(range(102, 110))


def test_the_nodes_that_left_first_are_forgotten_first(clock, monkeypatch):
    """The oldest node is away for a moment, after another one restarted often."""
    monkeypatch.setattr(departures, "MOST_GONE", 3)
    grid = FakeGrid(clock)
    grid.join(1, FakeClient("oldest"))
    registry = ClientRegistry()
    for node in range(100, 110):
        grid.join(node, FakeClient("restarts"))
        refresh_often(registry, grid, clock)
        grid.leave(node)
    for _ in range(2):
        grid.leave(1)
        registry.refresh(grid)
        grid.join(1, FakeClient("oldest"))
        registry.refresh(grid)
        assert registry.available == [0]
    assert list(registry.node_names.names) == [1, 108, 109]
