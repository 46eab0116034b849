"""Replies over the network that are too large: they are not downloaded, and nothing ends."""

import json

import numpy as np
import pytest
from fakes import FakeClient, answering, learner, messages, record
from flwr.app import ArrayRecord, RecordDict
from helpers import cohort_strategy, initial
from remote import RemoteGrid

from fedcohort.flower import DeadlineGrid, flwr_internals
from fedcohort.flower.flwr_internals import Announcement
from fedcohort.flower.puller import SMALL_REPLY, Download, most_reply_bytes


class CountingGrid(RemoteGrid):
    """Counts the bytes that are downloaded."""

    downloaded = 0

    def PullObject(self, request):
        response = super().PullObject(request)
        self.downloaded += len(response.object_content)
        return response


def grid_with(clock, *clients):
    grid = CountingGrid(clock)
    for node, client in enumerate(clients, 11):
        grid.join(node, client)
    return grid


def large(arrays):
    """A reply of arrays with 100 kB each."""
    content = record(**{f"a{place}": np.full(12_500, float(place)) for place in range(arrays)})
    return RecordDict({"arrays": content})


def reasons(grid, *nodes, deadline=2.0):
    written = messages(*nodes)
    replies = list(DeadlineGrid(grid, deadline).send_and_receive(written))
    found = {reply.metadata.reply_to_message_id: reply for reply in replies}
    said = []
    for message in written:
        reply = found[message.metadata.message_id]
        said.append(reply.error.reason if reply.has_error() else "")
    return said


def test_a_reply_larger_than_the_model_allows_is_not_downloaded_to_its_end(clock):
    grid = grid_with(clock, answering(0.05, large(50)), answering(0.05))
    first, second = reasons(grid, 11, 12)
    assert f"bytes, more than {SMALL_REPLY}" in first
    assert second == ""
    assert SMALL_REPLY < grid.downloaded < 1.3 * SMALL_REPLY
    assert len(grid.confirmed) == 2, "the SuperLink may drop it"


def test_a_reply_of_very_many_parts_is_not_downloaded_at_all(clock):
    grid = grid_with(clock)
    announcement = Announcement("message", "reply", [str(place) for place in range(20_000)])
    with pytest.raises(ValueError, match=f"at least 1280000 bytes, more than {SMALL_REPLY}"):
        Download(grid, announcement, SMALL_REPLY).fetch()
    assert dict(grid.requests) == {"ConfirmMessageReceived": 1}


def test_the_allowance_grows_with_the_model(clock):
    """A reply of 5 MB to a model of 5 MB is what is expected."""
    model = ArrayRecord(dict(large(50)["arrays"]))
    grid = grid_with(clock, *(learner(number) for number in range(2)))
    run = cohort_strategy(cohort_size=2)
    run.start(grid, model, 1)
    assert run.training.totals.arrived == 2


def repeating(content):
    """The parts of a reply whose array names its only chunk a hundred thousand times."""
    head, _, body = content.partition(b"\x00")
    if not head.startswith(b"Array "):
        return content
    said = json.loads(body)
    said["arraychunk_ids"] = [0] * 100_000
    body = json.dumps(said).encode()
    kind, children, _ = head.split(b" ")
    return b" ".join([kind, children, str(len(body)).encode()]) + b"\x00" + body


def test_an_array_that_repeats_a_chunk_is_refused_before_it_is_put_together(clock, monkeypatch):
    grid = grid_with(clock, answering(0.05, large(1)), answering(0.05))
    pull = grid.PullObject

    def lie(request):
        response = pull(request)
        response.object_content = repeating(response.object_content)
        return response

    grid.PullObject = lie
    first, second = reasons(grid, 11, 12)
    assert "more than" in first
    assert "bytes" in first
    assert second == ""


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), OverflowError("big")])
def test_whatever_is_raised_when_a_reply_is_read_costs_only_its_client(clock, monkeypatch, error):
    inflate = flwr_internals.inflate_object_from_contents

    def raising(message_id, contents):
        reply = inflate(message_id, contents)
        if reply.metadata.src_node_id == 13 and reply.metadata.message_type == "train":
            raise error
        return reply

    monkeypatch.setattr(flwr_internals, "inflate_object_from_contents", raising)
    grid = grid_with(clock, *(learner(number) for number in range(3)))
    run = cohort_strategy()
    rows = []
    begin = run.training.begin

    def begin_with_rows(*parts):
        begin(*parts)
        run.training.journal.write = rows.append

    run.training.begin = begin_with_rows
    run.start(grid, initial(), 1)
    (row,) = rows
    assert [asked["status"] for asked in row["asked"]] == ["arrived", "arrived", "rejected"]
    assert type(error).__name__ in row["asked"][2]["reason"]


def test_an_answer_to_who_are_you_may_not_be_large(clock, logged):
    grid = grid_with(clock, learner(0), learner(1), FakeClient("x" * 3_000_000))
    run = cohort_strategy(cohort_size=2)
    run.start(grid, initial(), 1)
    (line,) = [line for line in logged if "does not say which client it is" in line]
    assert f"more than {SMALL_REPLY}" in line


def test_the_largest_of_several_models_bounds_the_size_of_replies():
    sent = messages(1, 2)
    model = large(3)["arrays"]
    sent[0].content = RecordDict({"arrays": model})
    assert most_reply_bytes(sent) == 2 * model.count_bytes() + SMALL_REPLY
    assert most_reply_bytes(sent[1:]) == SMALL_REPLY
