"""The grid that keeps the deadline: it sends messages and waits for replies until then."""

import logging
from collections.abc import Callable, Iterable, Sequence
from math import inf
from time import monotonic, sleep, time

from flwr.app import Message
from flwr.serverapp import Grid

from fedcohort.checks import check_positive
from fedcohort.early_stop import stop_margin
from fedcohort.flower.downloads import largest_reply
from fedcohort.flower.errors import NOT_TAKEN, TROUBLE, UNREADABLE, error_reply
from fedcohort.flower.flwr_internals import UNDELIVERED, check_flower
from fedcohort.flower.forwarding import ForwardingGrid
from fedcohort.flower.late import LateReplies
from fedcohort.flower.puller import Failure, Puller
from fedcohort.flower.superlink import SuperLink, SuperLinkTrouble
from fedcohort.flower.workers import Workers

log = logging.getLogger("flwr.fedcohort")

# All in seconds.
LAST_PULL = 0.15  # before the deadline: Flower counts what is pulled later as expired
QUIET_END = 2.0  # before the deadline: only replies are looked for, `meanwhile` is not called
SHORTEST_POLL = 0.02  # quick rounds poll often, long ones every `poll` seconds
LAST_CHANCE = 1.0  # after the deadline: for the last pull, if the SuperLink has trouble

MOST_DOWNLOADS = 8  # threads that download replies at the same time
HasEnough = Callable[[Sequence[Message]], bool]  # given the replies so far


class DeadlineGrid(ForwardingGrid):
    """A grid on which every exchange of messages ends at the deadline.

    A message lives exactly until the deadline. Flower therefore refuses late replies and does not
    deliver late messages, and one last pull removes what has expired, so nothing is left behind.

    Args:
        grid: The grid that Flower gives to the server app.
        deadline: Seconds from sending until the exchange ends. None takes the `timeout` of each
            call instead.
        poll: Longest time between two pulls, in seconds.
        close_early: Whether the exchange ends as soon as all clients have answered.
        meanwhile: A function that is called between pulls, except close to the deadline.

    Raises:
        ValueError: If `deadline` or `poll` is not a positive number.

    Examples:
        Every strategy of Flower keeps the deadline on this grid:
        `FedAvg().start(DeadlineGrid(grid, deadline=60.0), initial_arrays)`.
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
        if deadline is not None:
            deadline = check_positive("deadline", deadline)
        self.deadline = deadline
        self.poll = check_positive("poll", poll)
        self.close_early = close_early
        self.meanwhile = meanwhile
        check_flower(grid)
        self.superlink = SuperLink(grid)
        self._downloaders = Workers(MOST_DOWNLOADS)
        self._leftovers: set[str] = set()  # messages that trouble kept from being pulled
        self._answered_at = -inf  # when the last pull began that the SuperLink answered
        self.late = LateReplies()

    def send_and_receive(
        self,
        messages: Iterable[Message],
        *,
        timeout: float | None = None,
        has_enough: HasEnough | None = None,
    ) -> Iterable[Message]:
        """Send messages and return the replies that arrive before the deadline.

        Args:
            messages: The messages to send.
            timeout: Seconds until the exchange ends if the grid has no deadline of its own.
            has_enough: Whether the replies so far are enough to end the exchange. The others are
                then without a reply; what they answer later is left to `late`.

        Returns:
            The replies, in the order of their arrival. Late replies are never among them. A client
            without a reply may have an error reply from Flower, or one that says that the
            SuperLink had trouble.
        """
        seconds = self.deadline if self.deadline is not None else timeout
        # Nodes compare the creation time with their wall clock. The server waits by the monotonic
        # clock, because somebody may set the wall clock during the round.
        created_at = time()
        start = monotonic()
        end = inf if seconds is None else start + seconds

        sent = list(messages)
        for message in sent:
            message.metadata.created_at = created_at
            if seconds is not None:
                message.metadata.ttl = seconds

        largest = largest_reply(sent)
        self.superlink.forget_troubles()
        self._answered_at = -inf
        waiting, replies = self._push(sent, end)
        pushed_at = monotonic()
        puller = Puller(self.superlink, self._downloaders, largest)
        replies += self._pull_until(start, end, waiting, puller, has_enough)
        if waiting and has_enough is not None and has_enough(replies):
            self.late.add(waiting.values(), puller, end)
            self._remove_leftovers(puller)
            return replies

        # The last pull below finds no reply any more, so it does not show that the SuperLink
        # answered in time.
        answered_at = self._answered_at
        closed_at = end if waiting else min(end, monotonic())
        lasts_until_end = not self.close_early and end < inf
        if waiting or (sent and lasts_until_end):
            sleep(max(0.0, end - monotonic()) + 0.01)
        if waiting:
            # All messages have expired: Flower answers for the silent and forgets their messages.
            # Replies that are announced but not complete are too late.
            expired = waiting.keys() - puller.downloads.keys()
            replies += self._pull(expired, waiting, puller, end + LAST_CHANCE)
            while puller.downloads.keys() & expired and monotonic() < end + LAST_CHANCE:
                sleep(SHORTEST_POLL)
                replies += self._pull(waiting.keys() & expired, waiting, puller, end + LAST_CHANCE)
        self._remove_leftovers(puller)
        self._leftovers |= waiting.keys() - puller.downloads.keys()
        puller.cancel(list(puller.downloads))
        if not self.troubles:
            return replies

        # Silence is the client's failure, unless the SuperLink brought its message late, did not
        # answer when the client's reply could be there, or broke off the download of it.
        answer_time = float(stop_margin(end - start))  # clients stop so long before the end
        was_away = pushed_at > start + answer_time or answered_at < closed_at - answer_time
        reason = f"the SuperLink had trouble: {self.troubles[0]}"
        return _excuse(sent if was_away else puller.interrupted(sent), replies, reason)

    @property
    def troubles(self) -> list[str]:
        """What went wrong with the SuperLink in the last exchange."""
        return self.superlink.troubles

    def _push(self, sent: list[Message], end: float) -> tuple[dict[str, Message], list[Message]]:
        """Return the messages that wait for a reply, and error replies for those refused."""
        if not sent:
            return {}, []
        try:
            # Flower takes a message that it has already as if it were new.
            accepted = self.superlink.call(
                "send messages", lambda: set(self.push_messages(sent)), end
            )
        except SuperLinkTrouble:
            self._leftovers |= {message.metadata.message_id for message in sent} - {""}
            return {}, []

        waiting = {}
        refused = []
        for message in sent:
            if message.metadata.message_id in accepted:
                waiting[message.metadata.message_id] = message
            else:
                reason = "Flower did not take the message to it"
                refused.append(error_reply(message, NOT_TAKEN, reason))
        if refused:
            log.error("Flower did not take %d of %d messages", len(refused), len(sent))
        return waiting, refused

    def _pull_until(
        self,
        start: float,
        end: float,
        waiting: dict[str, Message],
        puller: Puller,
        has_enough: HasEnough | None,
    ) -> list[Message]:
        """Pull until all have answered, or enough of them, or the deadline is near."""
        replies: list[Message] = []
        last_pull = end - min(LAST_PULL, 0.1 * (end - start))
        while waiting:
            news = self._pull(set(waiting), waiting, puller, last_pull)
            replies += news
            if news and has_enough is not None and has_enough(replies):
                break
            if end - monotonic() > QUIET_END:
                self.late.pull_if_due()
                if self.meanwhile:
                    self.meanwhile()
            time_left = last_pull - monotonic()
            if time_left <= 0:
                break
            if waiting:
                sleep(min(time_left, self._pause(monotonic() - start)))
        return replies

    def _pause(self, elapsed: float) -> float:
        """Return the seconds until the next pull."""
        return min(self.poll, max(SHORTEST_POLL, 0.05 * elapsed))

    def _pull(
        self, message_ids: set[str], waiting: dict[str, Message], puller: Puller, end: float
    ) -> list[Message]:
        """Return the replies that have arrived and remove their messages from `waiting`."""
        began_at = monotonic()
        try:
            replies, failures = puller.pull(message_ids, end)
        except SuperLinkTrouble:
            return []
        self._answered_at = began_at
        for reply in replies:
            if reply.has_error() and reply.error.code == TROUBLE:
                message_id = reply.metadata.reply_to_message_id
                failures[message_id] = Failure(UNREADABLE, "its error is one of the server's own")
        replies = [reply for reply in replies if reply.metadata.reply_to_message_id not in failures]
        for message_id, failure in failures.items():
            if message_id in waiting:
                replies.append(error_reply(waiting[message_id], failure.code, failure.reason))
        for reply in replies:
            waiting.pop(reply.metadata.reply_to_message_id, None)
        return replies

    def _remove_leftovers(self, puller: Puller) -> None:
        """Pull what earlier exchanges could not, so that nothing is left behind; try once."""
        if not self._leftovers:
            return
        try:
            puller.pull(self._leftovers, end=monotonic())
        except SuperLinkTrouble:
            return
        self._leftovers = set()


def _excuse(messages: list[Message], replies: list[Message], reason: str) -> list[Message]:
    """Replace silence after some messages by an error of ours, which blames nobody."""
    unanswered = {message.metadata.message_id: message for message in messages}
    for reply in replies:
        is_silence = reply.has_error() and reply.error.code in UNDELIVERED
        if not is_silence:
            unanswered.pop(reply.metadata.reply_to_message_id, None)
    kept = [reply for reply in replies if reply.metadata.reply_to_message_id not in unanswered]
    return kept + [error_reply(message, TROUBLE, reason) for message in unanswered.values()]
