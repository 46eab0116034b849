"""Times that clients report: they may be any number, and must neither end nor mislead a run."""

from math import inf, nan

import pytest
from fakes import federation
from flwr.app import Error
from helpers import cohort_strategy, initial, journal

from fedcohort.flower.errors import STOPPED
from fedcohort.flower.times import answer_seconds
from fedcohort.selection.random import Random


@pytest.mark.parametrize(
    ("answered_at", "seconds"),
    [
        (103.0, 3.0),
        (100.0, 0.0),
        (110.0, 10.0),
        (111.0, 10.0),
        (99.0, 0.0),
        (inf, 10.0),
        (-inf, 0.0),
        (1e308, 10.0),
        (-1e308, 0.0),
        (nan, 10.0),
    ],
)
def test_a_time_is_between_zero_and_the_longest_possible(answered_at, seconds):
    assert answer_seconds(100.0, answered_at, 10.0) == seconds


def test_if_the_server_clock_went_back_no_time_is_negative():
    assert answer_seconds(100.0, 103.0, -1.0) == 0.0
    assert answer_seconds(100.0, nan, -1.0) == 0.0


class RecordingSeconds(Random):
    def update(self, outcome):
        self.told = outcome.seconds.tolist()
        super().update(outcome)


def forge_time(grid, node, created_at):
    """Let the training replies of a node say that they were created at this time."""
    accept = grid._accept

    def forge(message, said, client):
        accept(message, said, client)
        reply = grid.replies.get(message.metadata.message_id)
        metadata = message.metadata
        if reply is not None and (metadata.dst_node_id, metadata.message_type) == (node, "train"):
            reply.metadata.__dict__["_created_at"] = created_at

    grid._accept = forge


@pytest.mark.parametrize("answer", ["a model", Error(2, "broken"), Error(STOPPED, "stopped")])
@pytest.mark.parametrize("created_at", [nan, inf, -inf, 1e308, -1e308])
def test_no_time_of_a_reply_ends_the_run_or_is_longer_than_the_round(
    clock, tmp_path, created_at, answer
):
    grid = federation(clock, 3)
    for client, delay in zip(grid.clients.values(), (1.0, 2.0, 1.5), strict=True):
        client.delay = delay
    if isinstance(answer, Error):
        grid.clients[102].train = lambda message: answer
    forge_time(grid, 102, created_at)
    selector = RecordingSeconds(3, 3, rng=0)
    seen = []

    def deadline(times):
        seen.extend([*times.answered, *times.unanswered])
        return 10.0

    strategy = cohort_strategy(selector=selector, deadline=deadline, folder=tmp_path)
    strategy.start(grid, initial(), num_rounds=2)

    rows = journal(tmp_path, keep_seconds=True)
    longest = rows[-1]["seconds"]
    assert 2.0 <= longest < 3.0
    expected = 0.0 if created_at < 0 else longest
    assert selector.told == pytest.approx([1.0, 2.0, expected], abs=0.001)
    assert all(0.0 <= seconds <= 3.0 for seconds in seen)
    for row in rows:
        asked = row["asked"][2]
        if isinstance(answer, Error):
            assert asked["seconds"] is None
        else:
            assert asked["seconds"] == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize("created_at", [nan, inf, -inf, 1e300])
def test_the_time_of_a_late_answer_is_at_most_what_its_message_lived(clock, tmp_path, created_at):
    """Client 2 answers after 4 s, and the server looks for late answers once a second."""
    grid = federation(clock, 3)
    for client, delay in zip(grid.clients.values(), (1.0, 1.0, 4.0), strict=True):
        client.delay = delay
    forge_time(grid, 102, created_at)

    def deadline(times):
        return 2 * max(times.answered, default=10.0)

    strategy = cohort_strategy(deadline=deadline, enough=2, folder=tmp_path)
    strategy.start(grid, initial(), num_rounds=8)

    rows = journal(tmp_path, keep_seconds=True)
    late = [entry for row in rows for entry in row.get("late", [])]
    assert late[0]["status"] == "late"
    if created_at == -inf:
        assert late[0]["seconds"] == 0.0
    else:
        assert 4.0 <= late[0]["seconds"] <= 6.0
    assert max(row["deadline"] for row in rows) <= 20.0
