"""Answers that come after their round was closed, because enough others had answered.

Flower cannot stop a client from the server's side. A client that is still at work on the message of
a closed round cannot be asked again before it has answered, or before that message has expired.
Its answer is pulled, so that nothing is left on the SuperLink, and discarded.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from time import monotonic, sleep, time

from flwr.app import Error, Message

from fedcohort.flower.flwr_internals import EXPIRED
from fedcohort.flower.puller import Puller
from fedcohort.flower.superlink import SuperLinkTrouble
from fedcohort.flower.times import answer_seconds

log = logging.getLogger("flwr.fedcohort")

# All in seconds.
PULL_PAUSE = 1.0  # between two looks for late answers
LAST_CHANCE = 2.0  # after its deadline, for an answer that is under way
CLOSING = 5.0  # that the end of a run waits for late answers


@dataclass(frozen=True)
class LateAnswer:
    """What came of a message after its round was closed.

    Attributes:
        message_id: The message.
        seconds: From the message to the answer, by the client's clock, at most what the message
            lived; 0 if there is no answer.
        error: Why there is no model; None if there is one, which nobody has looked at.
    """

    message_id: str
    seconds: float
    error: Error | None


@dataclass
class ClosedExchange:
    """The messages of an exchange that nobody waits for any more.

    Attributes:
        puller: Pulls their answers; it may have begun to download one.
        nodes: The nodes that are at work, by message id.
        sent_at: When the messages were created, by the wall clock.
        end: When they expire, on the monotonic clock.
        ttl: Seconds after which they expire.
    """

    puller: Puller
    nodes: dict[str, int]
    sent_at: float
    end: float
    ttl: float


class LateReplies:
    """Collects the answers to messages of closed rounds."""

    def __init__(self) -> None:
        self._exchanges: list[ClosedExchange] = []
        self._answers: list[LateAnswer] = []
        self._pulled_at = -inf

    @property
    def busy_nodes(self) -> set[int]:
        """The nodes that are at work on a message of a closed round."""
        busy: set[int] = set()
        for exchange in self._exchanges:
            busy.update(exchange.nodes.values())
        return busy

    def add(self, messages: Iterable[Message], puller: Puller, end: float) -> None:
        """Take over the unanswered messages of a round that is closed.

        Args:
            messages: The messages, at least one.
            puller: The puller of that round.
            end: When the messages expire, on the monotonic clock.
        """
        nodes = {}
        sent_at = inf
        ttl = 0.0
        for message in messages:
            nodes[message.metadata.message_id] = message.metadata.dst_node_id
            sent_at = min(sent_at, message.metadata.created_at)
            ttl = max(ttl, message.metadata.ttl)
        self._exchanges.append(ClosedExchange(puller, nodes, sent_at, end, ttl))

    def take(self) -> list[LateAnswer]:
        """Return the answers that have come since the last call."""
        answers = self._answers
        self._answers = []
        return answers

    def pull_if_due(self) -> None:
        """Look for answers, unless the last look was a moment ago."""
        if self._exchanges and monotonic() - self._pulled_at >= PULL_PAUSE:
            self.pull()

    def pull(self) -> None:
        """Look for answers, and give up those whose time is over."""
        self._pulled_at = monotonic()
        for exchange in self._exchanges:
            self._pull_exchange(exchange)
        self._exchanges = [exchange for exchange in self._exchanges if exchange.nodes]

    def close(self) -> None:
        """Wait a little for the last answers at the end of a run."""
        end = monotonic() + CLOSING
        while self._exchanges and monotonic() < end:
            self.pull()
            if self._exchanges:
                sleep(0.25)
        if self._exchanges:
            log.info(
                "%d clients are still at work on messages of closed rounds; their answers are not "
                "waited for",
                len(self.busy_nodes),
            )

    def _pull_exchange(self, exchange: ClosedExchange) -> None:
        try:
            replies, failures = exchange.puller.pull(set(exchange.nodes), end=monotonic())
        except SuperLinkTrouble:
            replies, failures = [], {}  # it is logged; the next look tries again
        lived = min(time() - exchange.sent_at, exchange.ttl)
        for reply in replies:
            error = reply.error if reply.has_error() else None
            seconds = answer_seconds(exchange.sent_at, reply.metadata.created_at, lived)
            self._note(exchange, reply.metadata.reply_to_message_id, seconds, error)
        for message_id, failure in failures.items():
            error = Error(failure.code, failure.reason)
            self._note(exchange, message_id, 0.0, error)
        if monotonic() > exchange.end + LAST_CHANCE:
            exchange.puller.cancel(list(exchange.puller.downloads))
            for message_id in list(exchange.nodes):
                self._note(exchange, message_id, 0.0, Error(EXPIRED, "no answer"))

    def _note(
        self, exchange: ClosedExchange, message_id: str, seconds: float, error: Error | None
    ) -> None:
        if exchange.nodes.pop(message_id, None) is not None:
            self._answers.append(LateAnswer(message_id, seconds, error))
