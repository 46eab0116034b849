"""Pulls that keep nobody waiting.

Over the network a node announces its reply before it uploads it, and Flower's own pull of many replies waits for each upload in
turn: one that hangs would hold up the round, and with it the answers of all others. So each reply is pulled by itself.
"""

from threading import Thread
from time import monotonic

from flwr.app import Message
from flwr.serverapp import Grid

from fedcohort.flower.private import forget_undelivered, over_network

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

    def pull(self, grid: Grid, messages: set[str]) -> list[Message]:
        """Return what has arrived, and what Flower answers for those that are gone; their messages are forgotten there."""
        replies = self._side_by_side(grid, messages) if over_network(grid) else list(grid.pull_messages(messages))
        forget_undelivered(grid, replies)
        return replies

    def _side_by_side(self, grid: Grid, messages: set[str]) -> list[Message]:
        for message in messages - self.under_way.keys():
            self.under_way[message] = Pull(grid, message)
            self.under_way[message].start()
        end = monotonic() + PATIENCE
        for pull in self.under_way.values():
            pull.join(max(0.0, end - monotonic()))
        done = [pull for pull in self.under_way.values() if not pull.is_alive()]
        for pull in done:
            del self.under_way[pull.message]
            if pull.error is not None:
                raise pull.error
        return [reply for pull in done for reply in pull.replies]
