"""Ask nodes which client they are.

A node without a registered name gets one query message; `fedcohort.flower.client_app` answers it
with `client-id` or `partition-id` of the node's configuration.
"""

import logging
from collections.abc import Collection, Mapping
from time import monotonic, sleep
from typing import Any, NamedTuple

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedcohort.flower.client import IDENTITY
from fedcohort.flower.flwr_internals import UNDELIVERED
from fedcohort.flower.puller import Puller
from fedcohort.flower.verdicts import verdict_of_error

log = logging.getLogger("flwr.fedcohort")
QUERY_TTL = 60.0  # seconds that a node has to answer before it is asked again
LONGEST_NAME = 200  # characters


class Query(NamedTuple):
    """A node that was asked which client it is, and when."""

    node: int
    asked_at: float


class NodeNames:
    """The client names that nodes give.

    Attributes:
        names: Name by node; empty if the node did not give a usable one.
        queries: Unanswered queries by message id.
        answer_times: Seconds that clients took to answer. A query needs no work, so this is the
            time in which an app starts.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.queries: dict[str, Query] = {}
        self.answer_times: list[float] = []
        self._puller = Puller()

    def refresh(self, grid: Grid, nodes: Mapping[int, Any]) -> None:
        """Read the answers that have arrived, and ask nodes that have no name yet."""
        self._read_answers(grid)
        asked = {query.node for query in self.queries.values()}
        strangers = []
        for node in sorted(nodes):
            is_known = nodes[node].name or node in self.names
            if not is_known and node not in asked:
                strangers.append(node)
        if strangers:
            self._ask(grid, strangers)

    def claims(self, nodes: Mapping[int, Any]) -> dict[str, list[int]]:
        """Return the nodes by the client name that they claim.

        A node claims the name it is registered under, else the name that it gave, else its id. A
        node that has not answered yet claims nothing.
        """
        claims: dict[str, list[int]] = {}
        for node in nodes:
            name = nodes[node].name or self.names.get(node)
            if not name and node in self.names:
                name = str(node)
            if name:
                claims.setdefault(name, []).append(node)
        return claims

    def close(self, grid: Grid) -> None:
        """Wait until the open queries are answered or expire, so that none is left behind."""
        end = monotonic() + QUERY_TTL + 1
        self._read_answers(grid)
        while self.queries and monotonic() < end:
            sleep(0.25)
            self._read_answers(grid)

    def _ask(self, grid: Grid, nodes: Collection[int]) -> None:
        message_type = f"{MessageType.QUERY}.{IDENTITY}"
        messages = []
        for node in nodes:
            message = Message(RecordDict(), node, message_type, ttl=QUERY_TTL, group_id="identity")
            messages.append(message)

        accepted = set(grid.push_messages(messages))
        for message in messages:
            if message.metadata.message_id in accepted:
                node = message.metadata.dst_node_id
                self.queries[message.metadata.message_id] = Query(node, monotonic())
                log.info("node %d is asked which client it is", node)

    def _read_answers(self, grid: Grid) -> None:
        if not self.queries:
            return
        replies, unreadable = self._puller.pull(grid, set(self.queries))
        for message_id, reason in unreadable.items():
            self._leave_unnamed(self.queries.pop(message_id).node, reason)
        for reply in replies:
            self._read_answer(reply)

    def _read_answer(self, reply: Message) -> None:
        query = self.queries.pop(reply.metadata.reply_to_message_id, None)
        if query is None:
            return  # a second answer to the same query

        if not reply.has_error():
            self.names[query.node] = _name_in(reply.content)
            self.answer_times.append(monotonic() - query.asked_at)
        elif reply.error.code not in UNDELIVERED:
            self._leave_unnamed(query.node, verdict_of_error(reply.error).reason)

    def _leave_unnamed(self, node: int, reason: str) -> None:
        self.names[node] = ""
        log.warning(
            "node %d does not say which client it is; after a restart it will be a new one: %s",
            node,
            reason,
        )


def _name_in(content: RecordDict) -> str:
    """Return the name in an answer, empty if there is none that can be used."""
    record = content.config_records.get("identity")
    if not record:
        return ""
    name = str(record.get("name", ""))
    if len(name) > LONGEST_NAME or not name.isprintable():
        return ""
    return name
