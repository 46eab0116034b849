"""Pulls that keep nobody waiting.

Over the network a node announces its reply before it uploads it, and Flower's own pull of many replies waits for each upload in
turn: one that hangs would hold up the round, and with it the answers of all others. So each reply is pulled by itself.
"""

from threading import Thread
from time import monotonic

from flwr.app import Message
from flwr.serverapp import Grid

from fedcohort.flower.private import NO_MESSAGE, forget_undelivered, over_network

PATIENCE = 0.1  # seconds that pulls are waited for at a time


class Pull(Thread):
    """One reply on its way; it ends with the process, whatever it still waits for."""

    def __init__(self, grid: Grid, message: str) -> None:
        super().__init__(daemon=True)
        self.grid, self.message = grid, message
        self.replies: list[Message] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.replies = list(self.grid.pull_messages({self.message}))
        except Exception as error:  # raised again where the reply is waited for
            self.error = error


class Puller:
    """Pulls the replies to some messages; one that is not whole yet comes with a later call, or never."""

    def __init__(self) -> None:
        self.under_way: dict[str, Pull] = {}

    def pull(self, grid: Grid, messages: set[str]) -> tuple[list[Message], dict[str, str]]:
        """Return what has arrived, and by message why an answer is none: whoever sent it, the others are not to suffer.

        What Flower answers for those that are gone is among the replies; their messages are forgotten there.
        """
        if over_network(grid):
            replies, broken = self._side_by_side(grid, messages)
        else:
            pulled = list(grid.pull_messages(messages)) if messages else []
            replies, broken = (
                [reply for reply in pulled if reply.metadata.reply_to_message_id in messages],
                {},
            )
        forget_undelivered(grid, replies)
        return replies, broken

    def _side_by_side(self, grid: Grid, messages: set[str]) -> tuple[list[Message], dict[str, str]]:
        for message in messages - self.under_way.keys():
            self.under_way[message] = Pull(grid, message)
            self.under_way[message].start()
        end = monotonic() + PATIENCE
        for pull in self.under_way.values():
            pull.join(max(0.0, end - monotonic()))
        done = [pull for pull in self.under_way.values() if not pull.is_alive()]
        replies: list[Message] = []
        broken: dict[str, str] = {}
        for pull in done:
            del self.under_way[pull.message]
            if isinstance(pull.error, NO_MESSAGE):
                broken[pull.message] = f"its answer cannot be read: {pull.error!r}"
            elif pull.error is not None:
                raise pull.error
            for reply in pull.replies:  # a client writes itself which message it answers
                if reply.metadata.reply_to_message_id == pull.message:
                    replies.append(reply)
                else:
                    broken[pull.message] = "its answer says that it is to another message"
        return replies, broken
