"""The deadline: a grid that ends every exchange on time, whatever strategy runs on it."""

import logging
from collections.abc import Callable, Iterable, Mapping
from math import inf
from time import monotonic, sleep, time
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fedcohort.checks import check_positive
from fedcohort.flower.outcomes import NOT_TAKEN, UNREADABLE, error_reply
from fedcohort.flower.private import over_network
from fedcohort.flower.pulling import Puller

log = logging.getLogger("flwr.fedcohort")
LAST_PULL = 0.15  # seconds before the deadline: what is pulled later counts as expired for Flower
QUIET_END = 2.0  # seconds before the deadline in which nothing but answers is looked after
SHORTEST_POLL = 0.02  # seconds; quick rounds are looked at often, long ones every `poll` seconds
PER_PULL = 0.01  # seconds between looks for each reply that is waited for: over the network each is a request
ASKED_TOO_OFTEN = 5  # times a strategy may list the nodes while it sets up one round


class Forwarding(Grid):
    """A grid that passes everything on to another."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    @property
    def run(self) -> Any:
        return self.grid.run

    def set_run(self, run: Any) -> None:
        self.grid.set_run(run)

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return self.grid.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        return self.grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self.grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self.grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self.grid.send_and_receive(messages, timeout=timeout)


class DeadlineGrid(Forwarding):
    """Ends every exchange at the deadline and leaves nothing behind; earlier once all have answered.

    Messages live exactly until the deadline, so that a late answer is refused by Flower and a late message is never delivered;
    a last pull after it removes what has expired. Without a deadline of its own the caller's timeout is one.
    """

    def __init__(
        self,
        grid: Grid,
        deadline: float | None = None,
        *,
        poll: float = 0.25,
        close_early: bool = True,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(grid)
        self.deadline = None if deadline is None else check_positive("deadline", deadline)
        self.poll = check_positive("poll", poll)
        self.close_early = close_early
        self.meanwhile = meanwhile  # called between pulls, but not close to the deadline

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send, pull until all have answered or the deadline, whichever is first; late answers are never returned."""
        sent, puller = list(messages), Puller()
        seconds = self.deadline if self.deadline is not None else timeout
        created, start = (
            time(),
            monotonic(),
        )  # nodes read the clock on the wall, which may be set while we wait
        for message in sent:
            message.metadata.created_at = created
            if seconds is not None:
                message.metadata.ttl = seconds
        accepted = set(self.push_messages(sent)) if sent else set()
        by_id = {message.metadata.message_id: message for message in sent}
        refused = [message for message in sent if message.metadata.message_id not in accepted]
        replies = [
            error_reply(message, NOT_TAKEN, "Flower did not take the message to it")
            for message in refused
        ]
        if refused:
            log.error("Flower did not take %d of %d messages", len(refused), len(sent))
        waiting = by_id.keys() & accepted
        end = start + seconds if seconds is not None else inf
        last = end - min(LAST_PULL, 0.1 * (end - start))
        while waiting:
            replies += self._pull(waiting, puller, by_id)
            if self.meanwhile and end - monotonic() > QUIET_END:
                self.meanwhile()
            left = last - monotonic()
            if left <= 0:
                break
            if waiting:
                soon = min(self.poll, max(SHORTEST_POLL, 0.05 * (monotonic() - start)))
                sleep(
                    min(
                        left,
                        max(soon, PER_PULL * len(waiting)) if over_network(self.grid) else soon,
                    )
                )
        if waiting or (sent and not self.close_early and end < inf):
            sleep(max(0.0, end - monotonic()) + 0.01)
            late = puller.under_way.keys()  # announced, but not here by the deadline
            arrived = self._pull(waiting - late, puller, by_id) if waiting else []
            replies += (
                arrived  # all expired now: Flower answers for the silent and forgets the messages
            )
        return replies

    def _pull(
        self, waiting: set[str], puller: Puller, sent: Mapping[str, Message]
    ) -> list[Message]:
        """Return what has arrived and stop waiting for it; an answer that is none is that client's failure."""
        arrived, broken = puller.pull(self.grid, waiting)
        arrived += [error_reply(sent[message], UNREADABLE, why) for message, why in broken.items()]
        waiting -= {reply.metadata.reply_to_message_id for reply in arrived}
        return arrived


class Shown(Forwarding):
    """A grid that shows a strategy only the nodes it may ask, and does not let it wait for more."""

    def __init__(self, grid: Grid, nodes: Iterable[int]) -> None:
        super().__init__(grid)
        self.nodes, self.listed = list(nodes), 0

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes shown; a strategy that asks again and again waits for others, and would for ever."""
        self.listed += 1
        if self.listed > ASKED_TOO_OFTEN:
            raise ValueError(
                f"the wrapped strategy must not wait for more nodes than the {len(self.nodes)} it is given"
            )
        return list(self.nodes)

    def get_nodes(self) -> Iterable[Any]:
        return [node for node in self.grid.get_nodes() if node.node_id in set(self.nodes)]
