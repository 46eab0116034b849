"""Pull replies so that one slow upload does not delay the others.

Over the network a node announces its reply before it uploads it. Flower's own pull of many
replies waits for each upload in turn, so one upload that hangs would hold up the round and the
replies of all other clients. Therefore each reply is pulled on a thread of its own.
"""

from threading import Thread
from time import monotonic

from flwr.app import Message
from flwr.serverapp import Grid

from fedcohort.flower.flwr_internals import (
    UNREADABLE_ERRORS,
    forget_undelivered,
    is_over_network,
)

PATIENCE = 0.1  # seconds that one call waits for the threads


class PullThread(Thread):
    """Pulls one reply. As a daemon it cannot keep the process alive."""

    def __init__(self, grid: Grid, message_id: str) -> None:
        super().__init__(daemon=True)
        self.grid = grid
        self.message_id = message_id
        self.replies: list[Message] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.replies = list(self.grid.pull_messages({self.message_id}))
        except Exception as error:  # the caller of `Puller.pull` raises it again
            self.error = error


class Puller:
    """Pulls the replies to some messages. An unfinished upload comes with a later call."""

    def __init__(self) -> None:
        self.threads: dict[str, PullThread] = {}  # by message id, of unfinished uploads

    def pull(self, grid: Grid, message_ids: set[str]) -> tuple[list[Message], dict[str, str]]:
        """Return the replies that have arrived, and why others cannot be read.

        Flower's answers for nodes that are gone are among the replies, and their messages are
        removed from the server.

        Args:
            grid: The grid to pull from.
            message_ids: The messages that still wait for a reply.

        Returns:
            The replies, and by message id the reason why a reply cannot be read. One unreadable
            reply does not affect those of other clients.
        """
        if is_over_network(grid):
            replies, unreadable = self._pull_in_threads(grid, message_ids)
        else:
            replies = _pull_at_once(grid, message_ids)
            unreadable = {}
        forget_undelivered(grid, replies)
        return replies, unreadable

    def _pull_in_threads(
        self, grid: Grid, message_ids: set[str]
    ) -> tuple[list[Message], dict[str, str]]:
        for message_id in message_ids - self.threads.keys():
            thread = PullThread(grid, message_id)
            self.threads[message_id] = thread
            thread.start()

        end = monotonic() + PATIENCE
        for thread in self.threads.values():
            thread.join(max(0.0, end - monotonic()))

        replies: list[Message] = []
        unreadable: dict[str, str] = {}
        finished = [thread for thread in self.threads.values() if not thread.is_alive()]
        for thread in finished:
            del self.threads[thread.message_id]
            if isinstance(thread.error, UNREADABLE_ERRORS):
                unreadable[thread.message_id] = f"its answer cannot be read: {thread.error!r}"
            elif thread.error is not None:
                raise thread.error

            for reply in thread.replies:
                # The client itself writes which message it answers.
                if reply.metadata.reply_to_message_id == thread.message_id:
                    replies.append(reply)
                else:
                    unreadable[thread.message_id] = "its answer says that it is to another message"
        return replies, unreadable


def _pull_at_once(grid: Grid, message_ids: set[str]) -> list[Message]:
    """Return the replies to these messages with one call, as the simulation engine allows."""
    if not message_ids:
        return []
    pulled = grid.pull_messages(message_ids)
    return [reply for reply in pulled if reply.metadata.reply_to_message_id in message_ids]
