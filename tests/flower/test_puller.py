"""Replies over the network: slow uploads, broken answers, and nothing left behind."""

from threading import Event
from types import SimpleNamespace

import pytest
from fakes import FakeGrid, answering, messages, silent
from flwr.app import Error
from flwr.proto.node_pb2 import Node
from google.protobuf.message import DecodeError

from fedcohort.flower import DeadlineGrid
from fedcohort.flower.grid import RestrictedGrid
from fedcohort.flower.verdicts import verdict_of_error


class Remote(FakeGrid):
    """A grid that reaches its SuperLink over the network, as that of a deployment does."""

    node = Node(node_id=1)
    run = SimpleNamespace(run_id=8)

    def __post_init__(self):
        super().__post_init__()
        self._runtime_client, self.confirmed = self, []

    def ConfirmMessageReceived(self, request):
        assert (request.run_id, request.node.node_id) == (8, 1)
        self.confirmed.append(request.message_object_id)


def test_what_silent_nodes_never_fetched_is_removed_from_the_server(clock):
    grid = Remote(clock)
    for node, client in enumerate(
        [answering(0.1), silent(), answering(0.2, Error(2, "it broke")), silent()], 1
    ):
        grid.join(node, client)
    clock.after(0.3, lambda: grid.leave(4))
    written = messages(1, 2, 3, 4)
    assert len(list(DeadlineGrid(grid, 1.0).send_and_receive(written))) == 4
    assert sorted(grid.confirmed) == sorted(written[place].metadata.message_id for place in (1, 3))


class Hanging(Remote):
    """One node announces its reply and never ends uploading it; who pulls that reply waits."""

    def __post_init__(self):
        super().__post_init__()
        self.hanging, self.upload = "", Event()

    def pull_messages(self, message_ids):
        ids = set(message_ids)
        if self.hanging in ids and self.instructions.pop(self.hanging, None):
            self.upload.wait()
        return super().pull_messages(ids)


def test_an_upload_that_hangs_holds_up_neither_the_round_nor_the_answers_of_others(clock):
    grid = Hanging(clock)
    for node, client in enumerate([silent(), answering(0.3), silent()], 1):
        grid.join(node, client)
    clock.after(0.05, lambda: setattr(grid, "hanging", written[0].metadata.message_id))
    written, start = messages(1, 2, 3), clock.now
    replies = {
        reply.metadata.reply_to_message_id: reply
        for reply in DeadlineGrid(grid, 1.0).send_and_receive(written)
    }
    assert clock.now - start == pytest.approx(1.0, abs=0.05)
    grid.upload.set()
    first, second, third = (replies.get(message.metadata.message_id) for message in written)
    assert first is None
    assert not second.has_error()
    assert third.has_error()


def test_what_goes_wrong_in_a_pull_is_raised_where_it_is_waited_for(clock):
    class Broken(Remote):
        def pull_messages(self, message_ids):
            raise ConnectionError("the SuperLink is gone")

    grid = Broken(clock)
    grid.join(1, answering(0.1))
    with pytest.raises(ConnectionError, match="the SuperLink is gone"):
        DeadlineGrid(grid, 1.0).send_and_receive(messages(1))


def test_what_was_never_fetched_is_removed_through_grids_of_ours_too(clock):
    grid = Remote(clock)
    grid.join(1, silent())
    written = messages(1)
    list(DeadlineGrid(RestrictedGrid(grid, [1]), 1.0).send_and_receive(written))
    assert grid.confirmed == [written[0].metadata.message_id]


class Lying(Remote):
    """Some nodes answer with bytes that are no message, or claim to answer another message."""

    lies: dict  # by node: what is raised, or the node whose message is named

    def pull_messages(self, message_ids):
        (message,) = message_ids
        replies = list(super().pull_messages([message]))
        for reply in replies:
            lie = self.lies.get(reply.metadata.src_node_id)
            if isinstance(lie, Exception):
                raise lie
            if lie is not None:
                reply.metadata.__dict__["_reply_to_message_id"] = self.named[lie]
        return replies


@pytest.mark.parametrize(
    "lie", [DecodeError("torn"), KeyError("object"), ValueError("no record"), 3]
)
def test_an_answer_that_is_none_is_that_clients_failure_alone(clock, lie):
    grid = Lying(clock)
    for node, client in enumerate([answering(0.1), answering(0.2), silent()], 11):
        grid.join(node, client)
    written = messages(11, 12, 13)
    grid.lies, grid.named = {11: lie}, {3: "ff"}
    replies = {
        reply.metadata.reply_to_message_id: reply
        for reply in DeadlineGrid(grid, 1.0).send_and_receive(written)
    }
    first, second, third = (replies[message.metadata.message_id] for message in written)
    assert verdict_of_error(first.error).status == "rejected"
    assert second.has_content()
    assert verdict_of_error(third.error).status == "lost"


def test_nobody_answers_in_the_name_of_another(clock):
    grid = Lying(clock)
    for node, client in enumerate([answering(0.1), answering(0.5)], 1):
        grid.join(node, client)
    written = messages(1, 2)
    grid.lies, grid.named = {1: 2}, {2: None}
    clock.after(0.0, lambda: grid.named.update({2: written[1].metadata.message_id}))
    replies = {
        reply.metadata.reply_to_message_id: reply
        for reply in DeadlineGrid(grid, 2.0).send_and_receive(written)
    }
    first, second = (replies[message.metadata.message_id] for message in written)
    verdict = verdict_of_error(first.error)
    assert verdict.status == "rejected"
    assert verdict.reason == "its answer says that it is to another message"
    assert second.metadata.src_node_id == 2
