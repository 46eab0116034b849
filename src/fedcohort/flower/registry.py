"""Who is who: clients by name, whatever node they are on today.

A node is a connection: its id is new after every restart. A client is what the selector knows: its index never changes, and its
weight is kept while it is away. Names come from authenticated nodes (`flwr supernode register … --name`), else from the client
itself (`client-id` or `partition-id` of its node), else from the node's id, which does not survive a restart.

The silent. Flower lists a dead node for up to a minute. A client that was asked and of which nothing was heard is not asked
again until its node has given a sign of life since (a heartbeat, every 30 s, or a new node under the same name). So a death
costs a client one failure, and one that comes back is asked again with the weight it had.
"""

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from time import monotonic, sleep, time
from typing import Any

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedcohort.flower.client import IDENTITY
from fedcohort.flower.outcomes import Fate, fate_of_error
from fedcohort.flower.private import UNDELIVERED
from fedcohort.flower.pulling import Puller

log = logging.getLogger("flwr.fedcohort")
BETWEEN_LOOKS = 1.0  # seconds
QUESTION_LIVES = 60.0  # seconds a node has to say who it is before it is asked again
NO_HEARTBEAT = 1e6  # seconds: a node that is online for longer than this has no heartbeat, as in the simulation engine
LONGEST_NAME = 200


@dataclass
class Client:
    """One client: its name, the node it is on (None while it is away), what it declared, and since when it is silent."""

    name: str
    node: int | None = None
    sign_of_life: float = 0.0
    examples: float | None = None
    silent: tuple[int, float] | None = None

    @property
    def available(self) -> bool:
        """Whether it is there, and heard of since it last fell silent."""
        return self.node is not None and self.silent != (self.node, self.sign_of_life)


class Registry:
    """All clients ever seen, by index; places may be reserved for clients that have not come yet."""

    def __init__(self, places: int = 0) -> None:
        self.clients: list[Client | None] = [None] * places
        self.names: dict[int, str] = {}  # of every node that ever said who it is
        self.queries: dict[str, tuple[int, float]] = {}  # message: node asked, when
        self.start_up: list[
            float
        ] = []  # seconds clients took to answer a message that asks nothing
        self._looked = -inf
        self._puller = Puller()
        self._disputes: set[tuple[str, tuple[int, ...]]] = set()

    def __len__(self) -> int:
        return len(self.clients)

    @property
    def known(self) -> list[Client]:
        """The clients that have come, in the order of their index."""
        return [client for client in self.clients if client is not None]

    @property
    def available(self) -> list[int]:
        """The indices of those that can be asked now."""
        return [
            index
            for index, client in enumerate(self.clients)
            if client is not None and client.available
        ]

    def look(self, grid: Grid, at_once: bool = True) -> None:
        """Notice who has come and who has left, and ask strangers who they are; else only if the last look is a while ago."""
        if at_once or monotonic() - self._looked >= BETWEEN_LOOKS:
            self._settle(self._nodes(grid))

    def gather(self, grid: Grid, wanted: int, seconds: float) -> None:
        """Wait until so many clients are there, or the time is up; then give them their indices in the order of their names.

        Where no number was announced, those there are all, so every node is waited for until it has said who it is.
        """
        end, announced = monotonic() + seconds, bool(self.clients)
        nodes = self._nodes(grid)
        while monotonic() < end:
            claims = self._claims(nodes)
            if len(claims) >= wanted and (
                announced or sum(map(len, claims.values())) == len(nodes)
            ):
                break
            sleep(0.1)
            nodes = self._nodes(grid)
        self._settle(nodes)

    def wait_for_anybody(self, grid: Grid, seconds: float) -> None:
        """Wait until somebody can be asked, or the time is up."""
        end = monotonic() + seconds
        while not self.available and monotonic() < end:
            sleep(0.25)
            self.look(grid)

    def close(self, grid: Grid) -> None:
        """Wait for questions that are still open, until they are answered or expire: nothing is to be left behind."""
        end = monotonic() + QUESTION_LIVES + 1
        self._hear(grid)
        while self.queries and monotonic() < end:
            sleep(0.25)
            self._hear(grid)

    @property
    def examples(self) -> list[float | None]:
        """How many examples each client last declared, by index."""
        return [client.examples if client else None for client in self.clients]

    def node(self, index: int) -> int:
        """Return the node a client is on now."""
        client = self.clients[index]
        if client is None or client.node is None:
            raise ValueError(f"client {index} must be there to be asked, got one that is away")
        return client.node

    def name(self, index: int) -> str:
        """Return a client's name; that of a place kept for someone who never came is its index."""
        client = self.clients[index]
        return client.name if client else str(index)

    def note(self, index: int, node: int, fate: Fate, examples: float) -> None:
        """Remember what came of a client that was asked on a node; one that fell silent there must give a sign of life."""
        client = self.clients[index]
        if client is None:
            return
        if fate.status == "arrived":
            client.examples = examples
        has_heartbeat = 0 < client.sign_of_life < time() + NO_HEARTBEAT
        if fate.status == "lost" and client.node == node and has_heartbeat:
            client.silent = (node, client.sign_of_life)

    def _nodes(self, grid: Grid) -> dict[int, Any]:
        """Return the nodes there, after hearing those that were asked who they are and asking those that were not."""
        self._looked = monotonic()
        nodes = {node.node_id: node for node in grid.get_nodes()}
        self._hear(grid)
        asked = {node for node, _ in self.queries.values()}
        strangers = [
            node
            for node in sorted(nodes)
            if not nodes[node].name and node not in self.names and node not in asked
        ]
        if strangers:
            self._ask(grid, strangers)
        return nodes

    def _ask(self, grid: Grid, nodes: Collection[int]) -> None:
        kind = f"{MessageType.QUERY}.{IDENTITY}"
        messages = [
            Message(RecordDict(), node, kind, ttl=QUESTION_LIVES, group_id="identity")
            for node in nodes
        ]
        accepted = set(grid.push_messages(messages))
        for message in messages:
            if message.metadata.message_id in accepted:
                self.queries[message.metadata.message_id] = (
                    message.metadata.dst_node_id,
                    monotonic(),
                )
                log.info("node %d is asked which client it is", message.metadata.dst_node_id)

    def _hear(self, grid: Grid) -> None:
        if not self.queries:
            return
        replies, broken = self._puller.pull(grid, set(self.queries))
        for message, why in broken.items():
            self._leave_unnamed(self.queries.pop(message)[0], why)
        for reply in replies:
            if reply.metadata.reply_to_message_id not in self.queries:
                continue  # a second answer
            node, asked_at = self.queries.pop(reply.metadata.reply_to_message_id)
            if not reply.has_error():
                said = reply.content.config_records.get("identity")
                name = str(said.get("name", "")) if said else ""
                self.names[node] = name if len(name) <= LONGEST_NAME and name.isprintable() else ""
                self.start_up.append(monotonic() - asked_at)
            elif reply.error.code not in UNDELIVERED:
                self._leave_unnamed(node, fate_of_error(reply.error).reason)

    def _leave_unnamed(self, node: int, why: str) -> None:
        self.names[node] = ""
        log.warning(
            "node %d does not say which client it is; after a restart it will be a new one: %s",
            node,
            why,
        )

    def _claims(self, nodes: dict[int, Any]) -> dict[str, list[int]]:
        """Return which nodes claim which name: the one they are registered under, else what they said, else their id."""
        claims: dict[str, list[int]] = {}
        for node in nodes:
            name = (
                nodes[node].name
                or self.names.get(node)
                or (str(node) if node in self.names else "")
            )
            if name:
                claims.setdefault(name, []).append(node)
        return claims

    def _settle(self, nodes: dict[int, Any]) -> None:
        """Put every client on its node: of several that claim one name, a registered one, then the one that connected last."""
        claims = self._claims(nodes)
        for name in sorted(
            set(claims) - {client.name for client in self.known},
            key=lambda name: (_natural(name), name),
        ):
            self._place(Client(name))
        for client in self.known:
            rivals = sorted(
                claims.get(client.name, []),
                key=lambda node: (bool(nodes[node].name), nodes[node].last_activated_at, node),
            )
            self._move(client, rivals[-1] if rivals else None)
            if rivals:
                client.sign_of_life = float(nodes[rivals[-1]].online_until)
            if len(rivals) > 1 and (client.name, tuple(rivals)) not in self._disputes:
                self._disputes.add((client.name, tuple(rivals)))
                log.warning(
                    "client %s is claimed by nodes %s: %d is asked", client.name, rivals, rivals[-1]
                )

    def _place(self, newcomer: Client) -> None:
        """Give a newcomer its index: its own number if its place is free, else the first free place, else a new one."""
        free = [index for index, client in enumerate(self.clients) if client is None]
        own = int(newcomer.name) if re.fullmatch(r"[0-9]{1,18}", newcomer.name) else -1
        if own in free:
            self.clients[own] = newcomer
        elif free:
            self.clients[free[0]] = newcomer
        else:
            self.clients.append(newcomer)
        log.info("client %s is known from now on", newcomer.name)

    def _move(self, client: Client, node: int | None) -> None:
        if node != client.node:
            where = "has left" if node is None else f"is on node {node}"
            log.info("client %s %s", client.name, where)
            client.node = node

    def state_dict(self) -> dict[str, Any]:
        """Return names and what they declared, by index; nodes are found again."""
        return {
            "names": [client.name if client else None for client in self.clients],
            "examples": [client.examples if client else None for client in self.clients],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Know the same clients under the same indices."""
        told = zip(state["names"], state["examples"], strict=True)
        self.clients = [
            None if name is None else Client(name, examples=examples) for name, examples in told
        ]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that puts client-2 before client-10: digits by length first, words by letters."""
    parts = [
        part.lstrip("0") if part.isascii() and part.isdecimal() else part
        for part in re.split(r"([0-9]+)", name)
    ]
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(parts)]
