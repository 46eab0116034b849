"""Pull replies so that one slow upload does not delay the others.

Over the network a node announces its reply before it uploads it. Flower's own pull of many
replies waits for each upload in turn, so one upload that hangs would hold up the round and the
replies of all other clients. Therefore one request asks for all announcements, and a few threads
download what is complete. A download that lacks a part never waits for it; the next pull goes on
with it.
"""

from collections.abc import Iterable
from functools import partial
from time import monotonic
from typing import NamedTuple

from flwr.app import Message
from flwr.serverapp import Grid

from fedcohort.flower.downloads import SMALL_REPLY, Download, ReplySize
from fedcohort.flower.errors import UNREADABLE
from fedcohort.flower.flwr_internals import (
    EXPIRED,
    UNREADABLE_ERRORS,
    Announcement,
    MissingPart,
    confirm_received,
    is_over_network,
    is_transient,
    pull_announcements,
    undelivered_messages,
)
from fedcohort.flower.superlink import SuperLink, SuperLinkTrouble
from fedcohort.flower.workers import Workers

PATIENCE = 0.1  # seconds that one pull waits for the threads
CLEANING = 1.0  # seconds to wait until the messages that no node fetched are removed


class Failure(NamedTuple):
    """Why there is no reply to a message: an error code and a reason."""

    code: int
    reason: str


class Inquiry:
    """A request for the announced replies to some messages.

    Flower announces each reply only once. If nobody waits for the answer to a request any more, it
    counts all the same when it comes.

    Args:
        grid: The grid to ask.
        message_ids: The messages whose replies are asked for.

    Attributes:
        is_open: Whether the SuperLink is asked and has not answered yet.
        announcements: What it answered.
    """

    def __init__(self, grid: Grid, message_ids: set[str]) -> None:
        self.grid = grid
        self.message_ids = message_ids
        self.is_open = False
        self.announcements: list[Announcement] = []

    def make(self) -> None:
        """Ask the SuperLink."""
        self.is_open = True
        try:
            self.announcements = pull_announcements(self.grid, self.message_ids)
        finally:
            self.is_open = False

    @property
    def replied_ids(self) -> set[str]:
        """The messages to which a reply was announced, or may be, as long as this is open."""
        if self.is_open:
            return self.message_ids
        return {announcement.reply_to for announcement in self.announcements}


class Puller:
    """Pulls the replies to some messages. An unfinished upload comes with a later call.

    Args:
        superlink: Makes the calls.
        downloaders: The threads that download.
        largest: Largest size of a reply; larger ones are not downloaded.
    """

    def __init__(
        self, superlink: SuperLink, downloaders: Workers, largest: ReplySize = SMALL_REPLY
    ) -> None:
        self.largest = largest
        self.superlink = superlink
        self.grid = superlink.grid
        self.downloads: dict[str, Download] = {}  # by message id, of unfinished uploads
        self._downloaders = downloaders
        self._inquiries: list[Inquiry] = []  # that were given up, the oldest first
        self._interrupted: set[str] = set()  # message ids whose replies met trouble on their way

    def interrupted(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages whose replies the SuperLink could not hand out at some time."""
        interrupted = set(self._interrupted)
        for inquiry in self._inquiries:
            interrupted |= inquiry.replied_ids
        return [one for one in messages if one.metadata.message_id in interrupted]

    def pull(self, message_ids: set[str], end: float) -> tuple[list[Message], dict[str, Failure]]:
        """Return the replies that have arrived, and why others cannot be read.

        Flower's answers for nodes that are gone are among the replies, and their messages are
        removed from the server.

        Args:
            message_ids: The messages that still wait for a reply.
            end: When to give up if the SuperLink has trouble, on the monotonic clock.

        Returns:
            The replies, and by message id why there is no reply that can be read. One unreadable
            reply does not affect those of other clients.

        Raises:
            SuperLinkTrouble: If the SuperLink had trouble until the end.
        """
        if not message_ids:
            return [], {}
        if not is_over_network(self.grid):
            return self._pull_at_once(message_ids, end), {}

        unannounced = message_ids - self.downloads.keys()
        if unannounced:
            self._announce(unannounced, end)

        replies, failures = self._collect()
        self._remove_undelivered(replies)
        return replies, failures

    def _announce(self, message_ids: set[str], end: float) -> None:
        """Ask which replies are announced, and prepare to download them."""
        inquiry = Inquiry(self.grid, message_ids)
        try:
            self.superlink.call("pull replies", inquiry.make, end)
        except SuperLinkTrouble:
            self._inquiries = [one for one in self._inquiries if one.replied_ids]
            self._inquiries.append(inquiry)
            raise

        # The SuperLink has answered the last call, and so all calls before it.
        given_up = self._inquiries
        self._inquiries = []
        for late in given_up:
            self._interrupted |= late.replied_ids
        for answered in [*given_up, inquiry]:
            for announcement in answered.announcements:
                reply_to = announcement.reply_to
                if reply_to in message_ids and reply_to not in self.downloads:
                    self.downloads[reply_to] = Download(self.grid, announcement, self.largest)

    def cancel(self, message_ids: Iterable[str]) -> None:
        """Give up the unfinished downloads of the replies to some messages.

        A thread that is at one stops before the next part, so that others can have it.
        """
        for message_id in message_ids:
            download = self.downloads.pop(message_id, None)
            if download is not None:
                download.is_cancelled = True

    def _pull_at_once(self, message_ids: set[str], end: float) -> list[Message]:
        """Return the replies to these messages with one call, as the simulation engine allows."""
        pulled = self.superlink.call(
            "pull replies", lambda: list(self.grid.pull_messages(message_ids)), end
        )
        return [reply for reply in pulled if reply.metadata.reply_to_message_id in message_ids]

    def _collect(self) -> tuple[list[Message], dict[str, Failure]]:
        """Go on with all downloads, and return those that are done."""
        for download in self.downloads.values():
            if download.job is None:
                download.job = self._downloaders.submit(download.fetch)

        end = monotonic() + PATIENCE
        replies = []
        failures = {}
        for message_id, download in list(self.downloads.items()):
            job = download.job
            if job is None or not job.wait(end):
                continue
            download.job = None
            try:
                reply = job.result()
            except MissingPart:
                failures[message_id] = Failure(EXPIRED, "its answer was never complete")
            except UNREADABLE_ERRORS as error:
                failures[message_id] = Failure(UNREADABLE, f"its answer cannot be read: {error!r}")
            except Exception as error:
                if not is_transient(error):
                    raise
                self.superlink.note_trouble("download a reply", error)
                self._interrupted.add(message_id)
            else:
                if reply is not None:
                    replies.append(reply)
                    self._interrupted.discard(message_id)

        for message_id in failures:
            del self.downloads[message_id]
        for reply in replies:
            del self.downloads[reply.metadata.reply_to_message_id]
        return replies, failures

    def _remove_undelivered(self, replies: list[Message]) -> None:
        """Remove messages that no node fetched; what is not done in time goes on later."""
        jobs = []
        for message_id in undelivered_messages(replies):
            remove = partial(confirm_received, self.grid, message_id)
            jobs.append(self._downloaders.submit(remove))
        end = monotonic() + CLEANING
        for job in jobs:
            job.wait(end)
