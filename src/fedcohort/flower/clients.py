"""Who is who: clients by name, whichever node they are on.

A node is a connection, and its id changes with every restart. A client is what the selector
knows: its index never changes, and the selector keeps its weight while it is away. Names come
from authenticated nodes (`flwr supernode register ... --name`), else from the client itself
(`client-id` or `partition-id` of its node), else from the node's id, which does not survive a
restart.

Flower lists a dead node for up to a minute. A lost client, from which no answer came, is not asked
again before its node shows a sign of life: a heartbeat (every 30 s) or a new node under the same
name. So death costs a client one failure, and when it returns it has the weight it had.
"""

import heapq
import logging
import re
from collections.abc import Callable
from math import inf
from time import monotonic, time
from typing import Any

from flwr.serverapp import Grid

from fedcohort.flower.client_entry import Client
from fedcohort.flower.eligibility import ClientInfo, Eligibility
from fedcohort.flower.flwr_internals import is_over_network, is_transient
from fedcohort.flower.identity import NodeNames, log_lines
from fedcohort.flower.superlink import SuperLink, SuperLinkTrouble
from fedcohort.flower.text import natural_key
from fedcohort.flower.verdicts import Verdict
from fedcohort.flower.workers import Job, Workers

log = logging.getLogger("flwr.fedcohort")
REFRESH_PAUSE = 1.0  # seconds between two looks at the nodes during a round
PAUSE_PER_NODE = 0.01  # seconds: a listing has a line for every node, so many are listed less often
IDENTITY_BUDGET = 0.5  # seconds that a refresh between rounds waits for names
PATIENCE = 5.0  # seconds that a listing may take if the SuperLink has trouble
# Seconds. A node that is online for longer has no heartbeat, as in the simulation engine.
NO_HEARTBEAT = 1e6


class ClientRegistry:
    """All clients ever seen, by index.

    Args:
        num_clients: Number of indices that are reserved for clients, also for those that have not
            come yet. 0: every client gets its index when it comes.
        eligibility: Who may be asked at all. Others get no index, and are away to the selector.

    Attributes:
        find_busy: Returns the nodes that are at work on a message of a closed round; they cannot
            be asked. The run sets it.
    """

    def __init__(self, num_clients: int = 0, eligibility: Eligibility | None = None) -> None:
        self.clients: list[Client | None] = []
        self.eligibility = eligibility or Eligibility()
        self.node_names = NodeNames(asks_all=self.eligibility.needs_properties)
        self.find_busy: Callable[[], set[int]] = set
        self._indices: dict[str, int] = {}  # by name
        self._free: list[int] = []  # a heap of the indices that nobody has yet
        self._nodes: dict[int, Any] = {}  # as they were listed last
        self._refreshed_at = -inf
        self._superlink: SuperLink | None = None
        self._listers = Workers(1)
        self._listing: Job[list[Any]] | None = None  # that began during a round
        self._set_clients([None] * num_clients)
        self._reported_rivals: dict[str, list[int]] = {}  # by name

    def __len__(self) -> int:
        return len(self.clients)

    @property
    def known(self) -> list[Client]:
        """The clients that have come, in the order of their indices."""
        return [client for client in self.clients if client is not None]

    @property
    def available(self) -> list[int]:
        """The indices of the clients that can be asked now."""
        indices = []
        busy = self.find_busy()
        for index, client in enumerate(self.clients):
            if client is not None and client.is_available and client.node not in busy:
                indices.append(index)
        return indices

    @property
    def examples(self) -> list[float | None]:
        """The number of examples that each client last declared, by index."""
        return [client.examples if client else None for client in self.clients]

    @property
    def num_nodes(self) -> int:
        """The number of nodes that were listed last."""
        return len(self._nodes)

    @property
    def num_nameless(self) -> int:
        """The number of listed nodes that have not said which clients they are."""
        claims = self.node_names.claims(self._nodes)
        return len(self._nodes) - sum(map(len, claims.values()))

    def node(self, index: int) -> int:
        """Return the node that a client is on now."""
        client = self.clients[index]
        if client is None or client.node is None:
            raise ValueError(f"client {index} must be there to be asked, got one that is away")
        return client.node

    def name(self, index: int) -> str:
        """Return a client's name, or its index if it never came."""
        client = self.clients[index]
        return client.name if client else str(index)

    def refresh(self, grid: Grid, patience: float = PATIENCE) -> bool:
        """Notice who has come and who has left, and ask new nodes who they are.

        If the SuperLink has trouble for longer than `patience` seconds, all stays as it was.

        Returns:
            Whether the SuperLink said who is there.
        """
        try:
            self.assign_nodes(self.list_nodes(grid, patience))
        except SuperLinkTrouble as trouble:
            log.warning("the nodes are those of the last listing: %s", trouble)
            return False
        return True

    def refresh_if_due(self, grid: Grid) -> None:
        """Refresh unless the last time was a moment ago: a second, or more if there are many.

        Over the network this only begins, and a later call finds the nodes: no round waits for it.
        """
        if self._listing is not None and self._listing.is_done:
            self._read_listing(grid, self._listing)
        pause = max(REFRESH_PAUSE, PAUSE_PER_NODE * len(self._nodes))
        if self._listing is not None or monotonic() - self._refreshed_at < pause:
            return

        self._refreshed_at = monotonic()
        if is_over_network(grid):
            self._listing = self._listers.submit(lambda: list(grid.get_nodes()))
        else:
            self.refresh(grid, patience=0.0)

    def list_nodes(self, grid: Grid, patience: float = PATIENCE) -> dict[int, Any]:
        """Return the connected nodes by id, after asking the new ones who they are.

        Raises:
            SuperLinkTrouble: If the SuperLink has trouble for longer than `patience` seconds.
        """
        if self._superlink is None or not self._superlink.reaches(grid):
            self._superlink = SuperLink(grid)
        self._refreshed_at = monotonic()
        self._listing = None  # an older listing must not count after a newer one
        listed = self._superlink.call(
            "list the nodes", lambda: list(grid.get_nodes()), monotonic() + patience
        )
        self._nodes = {node.node_id: node for node in listed}
        self.node_names.refresh(grid, self._nodes, IDENTITY_BUDGET)
        return self._nodes

    def _read_listing(self, grid: Grid, listing: Job[list[Any]]) -> None:
        """Use the nodes that were listed during a round."""
        self._listing = None
        try:
            listed = listing.result()
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("cannot list the nodes: %s", error)
            return
        self._nodes = {node.node_id: node for node in listed}
        self.node_names.refresh(grid, self._nodes)
        self.assign_nodes(self._nodes)

    def eligible_claims(self, nodes: dict[int, Any]) -> dict[str, list[int]]:
        """Return the nodes by the client name that they claim, of clients that may be asked."""
        claims = {}
        for name, rivals in self.node_names.claims(nodes).items():
            if self.eligibility.admits(self._describe(name, self._by_priority(nodes, rivals)[-1])):
                claims[name] = rivals
        return claims

    @property
    def num_ineligible(self) -> int:
        """Number of connected clients that may not be asked."""
        return len(self.node_names.claims(self._nodes)) - len(self.eligible_claims(self._nodes))

    def assign_nodes(self, nodes: dict[int, Any]) -> None:
        """Give newcomers an index, and every client its node.

        If several nodes claim one name, a registered node wins, then the node that connected last.
        """
        claims = self.node_names.claims(nodes)
        eligible = self.eligible_claims(nodes)
        newcomers = eligible.keys() - self._indices.keys()
        for name in sorted(newcomers, key=lambda name: (natural_key(name), name)):
            self._add(Client(name))
        lines = [f"client {name} is known from now on" for name in sorted(newcomers)]
        log_lines(lines, f"{len(lines)} clients are known from now on")

        moves = []
        for client in self.known:
            rivals = self._by_priority(nodes, claims.get(client.name, []))
            client.is_eligible = client.name in eligible
            node = rivals[-1] if rivals else None
            if node != client.node:
                client.node = node
                place = "has left" if node is None else f"is on node {node}"
                moves.append(f"client {client.name} {place}")
            if node is not None:
                client.sign_of_life = float(nodes[node].online_until)
            if len(rivals) > 1:
                self._report_rivals(client.name, rivals)
        log_lines(moves, f"{len(moves)} clients have come or left")

    def _by_priority(self, nodes: dict[int, Any], rivals: list[int]) -> list[int]:
        """Return nodes that claim one name, the one that is asked last."""

        def priority(node: int) -> tuple[bool, str, int]:
            return bool(nodes[node].name), nodes[node].last_activated_at, node

        return sorted(rivals, key=priority)

    def _describe(self, name: str, node: int) -> ClientInfo:
        return ClientInfo(name, self.node_names.properties.get(node, {}))

    def record_verdict(self, index: int, node: int, verdict: Verdict) -> None:
        """Remember the examples of a client that returned a model, or that a client was lost.

        Args:
            index: The client's index.
            node: The node on which the client was asked.
            verdict: The verdict on its reply.
        """
        client = self.clients[index]
        if client is None:
            return
        if verdict.status == "arrived":
            client.examples = verdict.examples
        has_heartbeat = 0 < client.sign_of_life < time() + NO_HEARTBEAT
        if verdict.status == "lost" and client.node == node and has_heartbeat:
            client.lost_at = (node, client.sign_of_life)

    def state_dict(self) -> dict[str, Any]:
        """Return names and declared examples by index. Nodes are not kept."""
        names = [client.name if client else None for client in self.clients]
        return {"names": names, "examples": self.examples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the clients under the same indices."""
        clients = []
        for name, examples in zip(state["names"], state["examples"], strict=True):
            client = None if name is None else Client(name, examples=examples)
            clients.append(client)
        self._set_clients(clients)

    def _set_clients(self, clients: list[Client | None]) -> None:
        self.clients = clients
        self._indices = {}
        self._free = []
        for index, client in enumerate(clients):
            if client is None:
                self._free.append(index)  # in ascending order, so it is a heap
            else:
                self._indices[client.name] = index

    def _add(self, newcomer: Client) -> None:
        """Give a newcomer its index.

        A client whose name is a number gets that index if it is free. Others get the first free
        index, or a new one.
        """
        number = int(newcomer.name) if re.fullmatch(r"[0-9]{1,18}", newcomer.name) else -1
        # Indices that were given by number stay in the heap; they are skipped here.
        while self._free and self.clients[self._free[0]] is not None:
            heapq.heappop(self._free)

        if 0 <= number < len(self.clients) and self.clients[number] is None:
            index = number
        elif self._free:
            index = heapq.heappop(self._free)
        else:
            index = len(self.clients)
            self.clients.append(None)
        self.clients[index] = newcomer
        self._indices[newcomer.name] = index

    def _report_rivals(self, name: str, rivals: list[int]) -> None:
        """Log that several nodes claim one name, again only when they change."""
        if self._reported_rivals.get(name) == rivals:
            return
        self._reported_rivals[name] = rivals
        log.warning("client %s is claimed by nodes %s: %d is asked", name, rivals, rivals[-1])
