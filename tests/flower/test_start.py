"""What is noticed when a run starts: folders, Flower's private parts, clocks, long journals."""

import json
from collections import namedtuple

import pytest
from fakes import FakeClient, FakeGrid, federation
from flwr.app import Message
from helpers import cohort_strategy, initial, journal, refresh_often

from fedcohort.flower import DeadlineGrid, checkpoint
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.flwr_internals import check_flower
from fedcohort.lab.folder import load_journal

Usage = namedtuple("Usage", ["total", "used", "free"])


def test_a_full_folder_is_noticed_before_clients_are_waited_for(clock, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "disk_usage", lambda folder: Usage(100, 90, 10))
    start = clock.now
    with pytest.raises(ValueError, match=r"folder must have room for [\d,]+ bytes, got .* 10 free"):
        cohort_strategy(folder=tmp_path).start(FakeGrid(clock), initial())
    assert clock.now == start


def test_a_read_only_folder_is_noticed_before_clients_are_waited_for(clock, tmp_path, monkeypatch):
    def refuse(path, content):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(checkpoint.Path, "write_bytes", refuse)
    start = clock.now
    with pytest.raises(ValueError, match=r"folder must be one to write to, got .*Read-only"):
        cohort_strategy(folder=tmp_path).start(FakeGrid(clock), initial())
    assert clock.now == start


def flowers_grid(missing):
    """A grid that claims to be Flower's own, without one of its private parts."""
    parts = {"_runtime_client", "node", "run"} - {missing}
    client = {"PullMessages", "PullObject", "ConfirmMessageReceived"} - {missing}
    values = dict.fromkeys(parts)
    if "_runtime_client" in parts:
        values["_runtime_client"] = type("Client", (), dict.fromkeys(client))()
    grid = type("HttpGrid", (), {"__module__": "flwr.superlink.grid.http_grid", **values})
    return grid()


@pytest.mark.parametrize("missing", ["_runtime_client", "node", "PullMessages", "PullObject"])
def test_a_flower_without_a_private_part_is_refused_in_one_line(missing):
    expected = rf"supports flwr 1.40 and 1.41; in flwr [\d.]+ HttpGrid lacks {missing}$"
    with pytest.raises(RuntimeError, match=expected):
        DeadlineGrid(flowers_grid(missing), 5.0)


def test_flowers_own_grid_has_all_private_parts():
    from flwr.superlink.grid.http_grid import HttpGrid

    check_flower(flowers_grid(""))
    check_flower(HttpGrid("127.0.0.1:9", insecure=True, token="t"))


@pytest.mark.parametrize(
    ("shift", "words"),
    [(30.0, "is at least 30 s ahead of"), (-30.0, "is at least 30 s behind"), (1.0, None)],
)
def test_a_client_whose_clock_differs_is_admitted_with_a_warning(
    clock, logged, monkeypatch, shift, words
):
    grid, registry = FakeGrid(clock), ClientRegistry()
    grid.join(5, FakeClient("a"))
    accept = grid._accept

    def accept_shifted(message, said, client):
        accept(message, said, client)
        reply: Message = grid.replies[message.metadata.message_id]
        reply.metadata.created_at = clock.now + shift

    grid._accept = accept_shifted
    refresh_often(registry, grid, clock)
    assert registry.available == [0]
    warnings = [line for line in logged if "client a has a clock" in line]
    assert len(warnings) == (words is not None)
    assert words is None or words in warnings[0]


def test_a_node_that_never_answers_is_refused_with_the_reasons(clock, logged):
    grid, registry = FakeGrid(clock), ClientRegistry()
    grid.join(77, FakeClient("a", deaf=True))
    for _ in range(20):
        registry.refresh(grid)
        clock.sleep(10.0)
    warnings = [line for line in logged if "are not admitted" in line]
    assert len(warnings) == 1
    assert "(77)" in warnings[0]
    assert "clock is more than 60 s ahead" in warnings[0]


@pytest.mark.parametrize(("clients", "is_bounded"), [(200, False), (201, True), (3000, True)])
def test_lines_of_the_journal_do_not_grow_with_the_federation(clock, tmp_path, clients, is_bounded):
    grid = federation(clock, clients)
    strategy = cohort_strategy(selector="e3cs-0.5", num_clients=clients, folder=tmp_path, wait=60.0)
    strategy.start(grid, initial(), num_rounds=2)
    for row in journal(tmp_path):
        assert (row["probabilities"] is None) == is_bounded
        assert len(json.dumps(row)) < (1500 if is_bounded else 10_000)
        if is_bounded:
            summary = row["probability_summary"]
            assert summary["clients"] == summary["available"] == clients
            assert 0 < summary["smallest"] <= summary["median"] <= summary["largest"] <= 1
    assert len(load_journal(tmp_path)) == 2


def test_ten_thousand_nodes_are_listed_and_pulled_a_few_times(clock):
    """At the start: one question to all, few listings and few pulls, few log lines."""
    grid = FakeGrid(clock)
    for number in range(2000):
        delay = 0.005 * number  # the last one answers after 10 s
        grid.join(100 + number, FakeClient(str(number), query_delay=delay))
    registry = ClientRegistry(2000)
    from fedcohort.flower.availability import wait_for_clients

    wait_for_clients(registry, grid, 2000, 60.0)
    assert len(registry.available) == 2000
    assert grid.pushes == 1
    assert grid.listings <= 60
    assert grid.pulls <= 60
