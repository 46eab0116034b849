"""A Flower without processes: a clock that moves only in `sleep`, a SuperLink in a dict."""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from time import time
from typing import Any

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

SERVER = 1  # the node id of Flower's server, from which it answers for those that are silent
UNAVAILABLE, NODE_GONE, RAISED = 3, 5, 2
Answer = RecordDict | Error | None


class Killed(BaseException):
    """The server dies here: no Exception, so that nothing on the way can swallow it."""


class Clock:
    """Time that passes only in `sleep`; what is planned happens on the way."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.plan: list[tuple[float, int, Callable[[], object]]] = []
        self.order = count()

    def time(self) -> float:
        return self.now

    monotonic = time

    def datetime(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.now, tz=datetime.UTC)

    def after(self, seconds: float, what: Callable[[], object]) -> None:
        self.plan.append((self.now + seconds, next(self.order), what))

    def sleep(self, seconds: float) -> None:
        until = self.now + max(0.0, seconds)
        while due := sorted(entry for entry in self.plan if entry[0] <= until):
            self.plan.remove(due[0])
            self.now = max(self.now, due[0][0])
            due[0][2]()
        self.now = until


@dataclass
class FakeClient:
    """Answers messages; an answer of None is silence.

    Attributes:
        says: Its name; None for an app that does not know the query.
        train: What it answers to a training message.
        evaluate: What it answers to an evaluation message.
        delay: Seconds until it answers.
        query_delay: Seconds until it says its name.
        deaf: Whether it answers nothing at all.
    """

    says: str | None = ""
    train: Callable[[Message], Answer] = lambda message: None
    evaluate: Callable[[Message], Answer] = lambda message: None
    delay: float = 0.05
    query_delay: float = 0.05
    deaf: bool = False

    def answer(self, message: Message) -> tuple[float, Answer]:
        kind = message.metadata.message_type
        if self.deaf:
            return 0.0, None
        if kind.startswith("query"):
            unknown = Error(
                RAISED,
                "Traceback\n"
                "ValueError: no query function registered with name 'fedcohort_identity'",
            )
            said = (
                unknown
                if self.says is None
                else RecordDict({"identity": ConfigRecord({"name": self.says})})
            )
            return self.query_delay, said
        return self.delay, (self.train if kind == "train" else self.evaluate)(message)


@dataclass
class FakeGrid(Grid):
    """A SuperLink: keeps messages until they are pulled or expire, and refuses late answers.

    `trouble` gets "list", "push" or "pull" before each call, and returns what the call raises.
    """

    clock: Clock
    nodes: dict[int, NodeInfo] = field(default_factory=dict)
    clients: dict[int, FakeClient] = field(default_factory=dict)
    instructions: dict[str, Message] = field(default_factory=dict)
    replies: dict[str, Message] = field(default_factory=dict)
    pushed: list[Message] = field(default_factory=list)
    too_late: int = 0
    refuse: Callable[[Message], bool] = lambda message: False
    refused_as: str | None = "leave out"
    calls: int = 0
    dies_at_call: int | None = None
    trouble: Callable[[str], Exception | None] = lambda call: None
    listings: int = 0
    pushes: int = 0
    pulls: int = 0

    def __post_init__(self) -> None:
        self.ids = count(1)

    # what a test does to it

    def join(
        self,
        node: int,
        client: FakeClient,
        name: str = "",
        online_until: float = 0.0,
        last_activated_at: str = "",
    ) -> None:
        self.nodes[node] = NodeInfo(
            node_id=node,
            name=name,
            online_until=online_until,
            last_activated_at=last_activated_at or f"2026-01-01T{node:08d}",
        )
        self.clients[node] = client

    def leave(self, node: int) -> None:
        self.nodes.pop(node)
        self.clients.pop(node)

    def beat(self, node: int, online_until: float) -> None:
        self.nodes[node].online_until = online_until

    @property
    def left_behind(self) -> list[Message]:
        """What would still be in the database."""
        return [*self.instructions.values(), *self.replies.values()]

    def sent(self, kind: str = "train") -> list[Message]:
        return [
            message
            for message in self.pushed
            if message.metadata.message_type.split(".")[0] == kind
        ]

    # what Flower does

    @property
    def run(self) -> Any:
        return None

    def set_run(self, run: Any) -> None: ...

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: Any = None,
    ) -> Any:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return [node.node_id for node in self.get_nodes()]

    def get_nodes(self) -> Iterable[NodeInfo]:
        self.listings += 1
        self._count("list")
        copies = [NodeInfo() for _ in self.nodes]
        for copy, node in zip(copies, self.nodes.values(), strict=True):
            copy.CopyFrom(node)
        return copies

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        self.pushes += 1
        self._count("push")
        ids: list[Any] = []
        for message in messages:
            number = f"message-{next(self.ids)}"
            message.metadata.__dict__["_message_id"] = number
            assert message.metadata.ttl > 0
            if self.refuse(message) or message.metadata.dst_node_id not in self.nodes:
                ids += [] if self.refused_as == "leave out" else [self.refused_as]
                continue
            self.pushed.append(message)
            self.instructions[number] = message
            self._deliver(message)
            ids.append(number)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        self.pulls += 1
        self._count("pull")
        pulled = []
        for number in sorted(set(message_ids)):
            message = self.instructions.get(number)
            if message is None or self._expired(message):
                pulled.append(self._generated(number, UNAVAILABLE))
            elif number in self.replies:
                pulled.append(self.replies[number])
            elif message.metadata.dst_node_id not in self.nodes:
                pulled.append(self._generated(number, NODE_GONE))
            else:
                continue
            self.instructions.pop(number, None)
            self.replies.pop(number, None)
        return pulled

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        raise AssertionError("the stock loop must not be used")

    def _count(self, call: str) -> None:
        self.calls += 1
        if self.calls == self.dies_at_call:
            raise Killed
        error = self.trouble(call)
        if error is not None:
            raise error

    def _expired(self, message: Message) -> bool:
        return message.metadata.created_at + message.metadata.ttl <= self.clock.now

    def _deliver(self, message: Message) -> None:
        client = self.clients[message.metadata.dst_node_id]
        seconds, said = client.answer(message)
        if said is not None:
            self.clock.after(seconds, lambda: self._accept(message, said, client))

    def _accept(self, message: Message, said: RecordDict | Error, client: FakeClient) -> None:
        number = message.metadata.message_id
        if self.clients.get(message.metadata.dst_node_id) is not client:
            return  # it died, or left
        if number not in self.instructions or self._expired(message):
            self.too_late += 1
            return
        reply = Message(said, reply_to=message)
        self.replies[number] = reply

    def _generated(self, number: str, code: int) -> Message:
        message = Message(RecordDict(), SERVER, "query", ttl=1.0)
        message.metadata.__dict__["_message_id"] = number
        return Message(Error(code, "Message Unavailable"), reply_to=message)


def record(**arrays: Any) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


def model_of(arrays: ArrayRecord) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in arrays.items()}


def same(one: ArrayRecord, other: ArrayRecord) -> bool:
    """Whether two models are the same to the bit: names, order, types, shapes, values."""
    a, b = model_of(one), model_of(other)
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype
        and a[name].shape == b[name].shape
        and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


def returned(arrays: ArrayRecord, metrics: dict[str, Any]) -> RecordDict:
    return RecordDict({"arrays": arrays, "metrics": MetricRecord(metrics)})


def round_of(message: Message) -> int:
    return int(message.content.config_records["config"]["server-round"])


def learner(
    number: int, fails: Callable[[int], bool] = lambda round: False, dtype: Any = None
) -> FakeClient:
    """A client that moves half way to its own target, number + 1, and fails in some rounds.

    It has number + 1 examples.
    """

    def train(message: Message) -> Answer:
        if fails(round_of(message)):
            return Error(RAISED, "Traceback\nRuntimeError: out of memory")
        sent = model_of(message.content.array_records["arrays"])
        new = {name: array + 0.5 * (number + 1 - array) for name, array in sent.items()}
        kept = {
            name: Array(np.asarray(array, dtype=dtype or sent[name].dtype))
            for name, array in new.items()
        }
        return returned(ArrayRecord(kept), {"num-examples": number + 1, "train_loss": 1.0 + number})

    def evaluate(message: Message) -> Answer:
        return RecordDict(
            {"metrics": MetricRecord({"num-examples": number + 1, "accuracy": number / 10})}
        )

    return FakeClient(str(number), train, evaluate)


def federation(
    clock: Clock,
    size: int,
    fails: Callable[[int, int], bool] = lambda client, round: False,
    dtype: Any = None,
) -> FakeGrid:
    """Clients 0, 1, … on nodes 100, 101, …; `fails(client, round)` with rounds from 1."""
    grid = FakeGrid(clock)
    for number in range(size):
        grid.join(
            100 + number, learner(number, lambda round, number=number: fails(number, round), dtype)
        )
    return grid


def context(**node_config):
    return Context(1, 2, node_config, RecordDict(), {})


def message(ttl=60.0, created_at=None, kind="train", round=1):
    content = RecordDict(
        {"config": ConfigRecord({"server-round": round})} if round is not None else {}
    )
    written = Message(content, 5, kind, ttl=ttl)
    written.metadata.__dict__["_message_id"] = "m"
    written.metadata.created_at = time() if created_at is None else created_at
    return written


def done(to, context):
    return Message(RecordDict({"metrics": MetricRecord({"done": 1})}), reply_to=to)


def messages(*nodes):
    return [Message(RecordDict(), node, "train") for node in nodes]


def answering(seconds, answer=None):
    said = RecordDict({"metrics": MetricRecord({"seconds": seconds})}) if answer is None else answer
    return FakeClient("", train=lambda message: said, delay=seconds)


def silent():
    return FakeClient("", train=lambda message: None)


def grid_of(clock, *clients):
    grid = FakeGrid(clock)
    for place, client in enumerate(clients):
        grid.join(place + 1, client)
    return grid


def grid_with_names(clock, *names):
    """Unauthenticated nodes 1, 2, … whose clients say these names."""
    grid = FakeGrid(clock)
    for place, name in enumerate(names):
        grid.join(place + 1, FakeClient(name))
    return grid
