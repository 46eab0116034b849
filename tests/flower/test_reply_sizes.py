"""Replies over the network that are too large: they are not downloaded, and nothing ends."""

import json
import threading
import time

import numpy as np
import pytest
from fakes import FakeClient, answering, learner, messages, record
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.proto.message_pb2 import ObjectTree
from helpers import cohort_strategy, initial, journal
from remote import RemoteGrid

from fedcohort.flower import DeadlineGrid, flwr_internals
from fedcohort.flower.downloads import SMALL_REPLY, Download, ReplySize, largest_reply
from fedcohort.flower.flwr_internals import Announcement


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


def reasons(grid, *nodes, deadline=2.0, model=None):
    written = messages(*nodes)
    for message in written if model else ():
        message.content = RecordDict({"arrays": model})
    replies = list(DeadlineGrid(grid, deadline).send_and_receive(written))
    found = {reply.metadata.reply_to_message_id: reply for reply in replies}
    said = []
    for message in written:
        reply = found[message.metadata.message_id]
        said.append(reply.error.reason if reply.has_error() else "")
    return said


def test_a_reply_larger_than_the_model_allows_is_not_downloaded_to_its_end(clock):
    grid = grid_with(clock, answering(0.05, large(40)), answering(0.05))
    first, second = reasons(grid, 11, 12)
    assert f"bytes, more than {SMALL_REPLY.bytes}" in first
    assert second == ""
    assert SMALL_REPLY.bytes < grid.downloaded < 1.3 * SMALL_REPLY.bytes
    assert len(grid.confirmed) == 2, "the SuperLink may drop it"


@pytest.mark.parametrize(("parts", "is_refused"), [(5, False), (6, True)])
def test_a_reply_of_too_many_parts_is_not_downloaded_at_all(clock, parts, is_refused):
    grid = grid_with(clock)
    announcement = Announcement("message", "reply", [str(place) for place in range(parts)])
    grid.objects = dict.fromkeys(announcement.object_ids)  # announced, but not uploaded
    download = Download(grid, announcement, ReplySize(bytes=1000, parts=5))
    if is_refused:
        with pytest.raises(ValueError, match="at least 6 parts, more than 5"):
            download.fetch()
        assert dict(grid.requests) == {"ConfirmMessageReceived": 1}
    else:
        assert download.fetch() is None


class ScatteringGrid(RemoteGrid):
    """The trained models of one node come in very many parts."""

    def PullMessages(self, request):
        response = super().PullMessages(request)
        for message, tree in zip(
            response.messages_list, response.message_object_trees, strict=True
        ):
            metadata = message.metadata
            if metadata.src_node_id == 14 and metadata.message_type == "train":
                parts = [f"{metadata.message_id}-{place}" for place in range(10_000)]
                self.objects.update(dict.fromkeys(parts, b"tiny"))
                tree.children.extend(ObjectTree(object_id=part) for part in parts)
        return response


def test_a_client_whose_replies_have_very_many_parts_is_rejected_and_rests(clock, tmp_path):
    grid = ScatteringGrid(clock)
    for number in range(4):
        grid.join(11 + number, learner(number))
    cohort_strategy(cohort_size=4, folder=tmp_path).start(grid, initial(), num_rounds=5)
    statuses = []
    for row in journal(tmp_path):
        statuses.append({asked["client"]: asked["status"] for asked in row["asked"]})
    others = {"0": "arrived", "1": "arrived", "2": "arrived"}
    # The third rejection in a row is followed by a rest of 2 rounds.
    assert statuses == 3 * [others | {"3": "rejected"}] + 2 * [others]
    assert grid.requests["PullObject"] < 10_000


def wait_until(is_true):
    """Wait for a thread of ours, at most ten seconds of real time."""
    end = time.monotonic() + 10.0
    while not is_true() and time.monotonic() < end:
        time.sleep(0.01)
    assert is_true()


@pytest.mark.parametrize("closes_early", [False, True])
def test_a_download_that_nobody_waits_for_stops_before_the_next_part(clock, closes_early):
    """It hangs at its first part until its exchange is over."""
    grid = grid_with(clock, answering(0.05), answering(0.1))  # equal parts would be shared
    release = threading.Event()
    parts_asked = []
    hand_out = grid.PullObject

    def hang(request):
        if request.object_id in first_reply:
            parts_asked.append(request.object_id)
            release.wait(30)
        return hand_out(request)

    announce = grid.PullMessages
    first_reply = set()

    def announce_and_note(request):
        response = announce(request)
        for message, tree in zip(
            response.messages_list, response.message_object_trees, strict=True
        ):
            if message.metadata.src_node_id == 11:
                parts = flwr_internals.iterate_object_tree(tree)
                first_reply.update(part.object_id for part in parts)
        return response

    grid.PullObject = hang
    grid.PullMessages = announce_and_note
    on_time = DeadlineGrid(grid, 1.0)
    has_enough = (lambda replies: len(replies) == 1) if closes_early else None
    (reply,) = on_time.send_and_receive(messages(11, 12), has_enough=has_enough)
    assert reply.metadata.src_node_id == 12
    while on_time.late.busy_nodes:
        clock.sleep(0.5)
        on_time.late.pull()
    release.set()
    wait_until(lambda: len(grid.confirmed) == 2)  # the SuperLink may drop both
    assert len(first_reply) == 3  # the message, its records, and the metrics
    assert len(parts_asked) == 1


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


@pytest.mark.parametrize(
    "records",
    [{"m": MetricRecord({"all": [0.5] * 160_000})}, {"c": ConfigRecord({"x": bytes(1_250_000)})}],
)
def test_metrics_and_configurations_may_not_be_as_large_as_a_large_model(clock, records):
    """They would take 25 times as much memory as their bytes, however large the model is."""
    model = large(30)["arrays"]
    grid = grid_with(clock, answering(0.05, RecordDict(records)), answering(0.05, large(30)))
    first, second = reasons(grid, 11, 12, model=model)
    # Each of the 30 arrays has 2 parts, and a reply may have twice as many and 100 more.
    assert "bytes beside the numbers of its arrays, more than 1220000" in first
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
    assert f"more than {SMALL_REPLY.bytes}" in line


def test_the_largest_of_several_models_bounds_the_size_of_replies():
    sent = messages(1, 2)
    model = large(3)["arrays"]
    sent[0].content = RecordDict({"arrays": model})
    # Each of the three arrays is one part and one chunk, and a reply may have twice as many.
    expected = ReplySize(2 * model.count_bytes() + SMALL_REPLY.bytes, 12 + SMALL_REPLY.parts)
    assert largest_reply(sent) == expected
    assert largest_reply(sent[1:]) == SMALL_REPLY


def test_an_array_of_many_chunks_may_come_back_in_as_many_parts():
    """12 MB make 3 chunks of Flower; at most 13 are allowed for, and twice that."""
    (sent,) = messages(1)
    model = record(w=np.zeros(1_500_000))
    sent.content = RecordDict({"arrays": model})
    assert len(model["w"].slice_array()) == 3
    assert largest_reply([sent]).parts == 2 * (1 + 13) + SMALL_REPLY.parts
