"""Ask nodes which client they are.

A node without a registered name gets one query message; `fedcohort.flower.client_app` answers it
with `client-id` or `partition-id` of the node's configuration.

All nodes are asked with one push, and all answers are read with one pull. Over the network both
happen on a thread of their own, so that no round waits for them. A node that stays silent is asked
again after one minute, two minutes, four minutes, and so on up to an hour. So is a node whose app
crashes, and one whose answer is never complete: a known client must not become a new one because
of that. Of the many nodes of the simulation engine a few are asked, see `registration.py`.
"""

import logging
from collections.abc import Collection, Mapping
from functools import partial
from time import monotonic, sleep
from typing import Any, NamedTuple

from flwr.app import Error, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedcohort.flower.client import IDENTITY
from fedcohort.flower.departures import Departures
from fedcohort.flower.flwr_internals import CRASHED, NOT_LOADED, UNDELIVERED, is_over_network
from fedcohort.flower.node_answers import compare_clocks, name_in, properties_in
from fedcohort.flower.puller import Puller
from fedcohort.flower.registration import choose_probes, names_by_turn
from fedcohort.flower.superlink import SuperLink, SuperLinkTrouble
from fedcohort.flower.verdicts import verdict_of_error
from fedcohort.flower.workers import Job, Workers

log = logging.getLogger("flwr.fedcohort")

# All in seconds.
QUERY_TTL = 60.0  # that a node has to answer
LONGEST_SILENCE = 3600.0  # until a silent node is asked again
CLOSING = 5.0  # that the end of a run waits for open queries

MOST_DOWNLOADS = 2  # threads that download answers at the same time
MOST_LINES = 10  # about single nodes; more at once become one line
ASK_AGAIN = (*UNDELIVERED, NOT_LOADED, CRASHED)  # errors after which a node is asked again


class Query(NamedTuple):
    """A node that was asked which client it is, and when by the monotonic and the wall clock."""

    node: int
    asked_at: float
    created_at: float


class NodeNames:
    """The client names that nodes give.

    Args:
        asks_all: Whether nodes that are registered under a name, and all nodes of the simulation
            engine, are asked as well, because their properties are needed.

    Attributes:
        names: Name by node; empty if the node did not give a usable one.
        properties: Properties by node, of those that answered, if all are asked.
        queries: Unanswered queries by message id.
        answer_times: Seconds that clients took to answer. A query needs no work, so this is the
            time in which an app starts.
    """

    def __init__(self, asks_all: bool = False) -> None:
        self.asks_all = asks_all
        self.names: dict[int, str] = {}
        self.properties: dict[int, dict[str, Any]] = {}
        self.queries: dict[str, Query] = {}
        self.answer_times: list[float] = []
        self._silences: dict[int, int] = {}  # by node, how often it did not answer
        self._ask_again_at: dict[int, float] = {}  # by silent node
        self._silent_nodes: list[int] = []  # that were not yet warned of
        self._departures = Departures()
        self._puller: Puller | None = None
        self._workers = Workers(1)
        self._downloaders = Workers(MOST_DOWNLOADS)
        self._exchange: Job[None] | None = None

    def refresh(self, grid: Grid, nodes: Mapping[int, Any], budget: float = 0.0) -> None:
        """Read the answers that have arrived, and ask nodes that have no name yet.

        Args:
            grid: The grid the nodes are connected to.
            nodes: The connected nodes by id.
            budget: Seconds to wait for this over the network. What takes longer goes on beside the
                rounds, and a later call finds the names.
        """
        if not is_over_network(grid):
            self._read_and_ask(grid, nodes)
            return
        end = monotonic() + budget
        if self._exchange is not None:
            if not self._exchange.is_done and not (budget and self._exchange.wait(end)):
                return
            self._exchange.result()  # raises what is no trouble of the SuperLink
        self._exchange = self._workers.submit(partial(self._read_and_ask, grid, nodes))
        if budget:
            self._exchange.wait(end)

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
        """Wait a little for the answers to open queries. Silent nodes leave theirs behind."""
        end = monotonic() + CLOSING
        if self._exchange is not None:
            self._exchange.wait(end)
        while self.queries and monotonic() < end:
            if not self._read_answers(grid):
                break
            if self.queries:
                sleep(0.25)
        if self.queries:
            log.info("%d nodes never said which client they are", len(self.queries))

    def _read_and_ask(self, grid: Grid, nodes: Mapping[int, Any]) -> None:
        if self._read_answers(grid):
            self._ask_strangers(grid, nodes)
        self._forget_gone(nodes)

    def _forget_gone(self, nodes: Mapping[int, Any]) -> None:
        """Forget the nodes that left first. One of them that comes back is asked again."""
        memories: list[dict[int, Any]] = [self.names, self.properties]
        memories += [self._silences, self._ask_again_at]
        known: set[int] = set().union(*memories)
        for node in self._departures.take_oldest(known, nodes):
            for memory in memories:
                memory.pop(node, None)

    def _read_answers(self, grid: Grid) -> bool:
        """Read what has arrived; return whether the SuperLink could be asked."""
        if not self.queries:
            return True
        if self._puller is None or not self._puller.superlink.reaches(grid):
            self._puller = Puller(SuperLink(grid, uses_thread=False), self._downloaders)
        try:
            replies, failures = self._puller.pull(set(self.queries), end=monotonic())
        except SuperLinkTrouble:
            return False  # it is logged; the next look tries again
        for message_id, failure in failures.items():
            self._read_error(self.queries.pop(message_id).node, Error(*failure))
        for reply in replies:
            self._read_answer(reply)
        self._give_up_uploads(self._puller)
        self._warn_of_silence()
        return True

    def _give_up_uploads(self, puller: Puller) -> None:
        """Count nodes as silent whose answers were announced, and are never complete."""
        for message_id in puller.downloads.keys() & self.queries.keys():
            query = self.queries[message_id]
            if monotonic() - query.asked_at > QUERY_TTL:
                puller.cancel([message_id])
                del self.queries[message_id]
                self._note_silence(query.node)

    def _ask_strangers(self, grid: Grid, nodes: Mapping[int, Any]) -> None:
        asked = {query.node for query in self.queries.values()}
        now = monotonic()
        strangers = []
        for node in sorted(nodes):
            is_registered = bool(nodes[node].name) and not self.asks_all
            is_known = is_registered or node in self.names
            is_due = self._ask_again_at.get(node, now) <= now
            if not is_known and node not in asked and is_due:
                strangers.append(node)
        if strangers and not is_over_network(grid) and not self.asks_all:
            strangers = self._name_by_turn(nodes, strangers)
        if strangers:
            self._ask(grid, strangers)

    def _name_by_turn(self, nodes: Mapping[int, Any], strangers: list[int]) -> list[int]:
        """Name nodes of the simulation engine by their turns; return those to ask nevertheless."""
        expected = names_by_turn(nodes)
        has_odd_name = any(self.names.get(node, name) != name for node, name in expected.items())
        probes = choose_probes(expected)
        if not probes or has_odd_name or any(node in self._silences for node in probes):
            return strangers
        if any(node not in self.names for node in probes):
            return [node for node in strangers if node in probes]
        self.names.update(expected)
        return []

    def _ask(self, grid: Grid, nodes: Collection[int]) -> None:
        message_type = f"{MessageType.QUERY}.{IDENTITY}"
        messages = []
        for node in nodes:
            message = Message(RecordDict(), node, message_type, ttl=QUERY_TTL, group_id="identity")
            messages.append(message)

        superlink = SuperLink(grid, uses_thread=False)
        try:
            accepted = superlink.call(
                "ask nodes for their names",
                lambda: set(grid.push_messages(messages)),
                end=monotonic(),
            )
        except SuperLinkTrouble:
            return
        for message in messages:
            if message.metadata.message_id in accepted:
                metadata = message.metadata
                query = Query(metadata.dst_node_id, monotonic(), metadata.created_at)
                self.queries[message.metadata.message_id] = query
        lines = [f"node {node} is asked which client it is" for node in nodes]
        log_lines(lines, f"{len(lines)} nodes are asked which clients they are")

    def _read_answer(self, reply: Message) -> None:
        query = self.queries.pop(reply.metadata.reply_to_message_id, None)
        if query is None:
            return  # a second answer to the same query

        if not reply.has_error():
            self.names[query.node] = name_in(reply.content)
            if self.asks_all:
                self.properties[query.node] = properties_in(reply.content)
            elapsed = monotonic() - query.asked_at
            self.answer_times.append(elapsed)
            name = self.names[query.node] or str(query.node)
            compare_clocks(name, query.created_at, elapsed, reply.metadata.created_at)
        else:
            self._read_error(query.node, reply.error)

    def _read_error(self, node: int, error: Error) -> None:
        """Ask a node again if it could not answer. An app that knows no such query has no name."""
        reason = verdict_of_error(error).reason
        if error.code not in ASK_AGAIN:
            self._leave_unnamed(node, reason)
            return
        if error.code not in UNDELIVERED:
            log.info("node %d could not say which client it is: %s", node, reason)
        self._note_silence(node)

    def _note_silence(self, node: int) -> None:
        """Ask a silent node again, at first at once, then after longer and longer times."""
        silences = self._silences.get(node, 0) + 1
        self._silences[node] = silences
        pause = 0.0
        if silences == 1:
            self._silent_nodes.append(node)
        if silences > 1:
            pause = min(QUERY_TTL * 2.0 ** min(silences - 2, 10), LONGEST_SILENCE)
        self._ask_again_at[node] = monotonic() + pause

    def _warn_of_silence(self) -> None:
        """Log which nodes are not admitted because they do not answer, and why that may be."""
        silent = self._silent_nodes
        self._silent_nodes = []
        if not silent:
            return
        listed = ", ".join(map(str, silent[:MOST_LINES]))
        more = ", …" if len(silent) > MOST_LINES else ""
        log.warning(
            "%d nodes are not admitted, because they did not say within %g s which clients they "
            "are (%s%s); either their app does not start or crashes, or their clock is more than "
            "%g s ahead of the server's",
            len(silent),
            QUERY_TTL,
            listed,
            more,
            QUERY_TTL,
        )

    def _leave_unnamed(self, node: int, reason: str) -> None:
        self.names[node] = ""
        log.warning(
            "node %d does not say which client it is; after a restart it will be a new one: %s",
            node,
            reason,
        )


def log_lines(lines: list[str], summary: str) -> None:
    """Log lines about single nodes or clients, or only the summary if there are many."""
    if len(lines) > MOST_LINES:
        lines = [summary]
    for line in lines:
        log.info("%s", line)
