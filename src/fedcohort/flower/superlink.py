"""Calls of the SuperLink that try again after an error that passes, and end in time.

A refused or reset connection, an HTTP status from 500 on and a locked database are trouble of the
SuperLink. They pass, and they say nothing about any client.
"""

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, TypeVar

from flwr.serverapp import Grid

from fedcohort.flower.flwr_internals import innermost_grid, is_over_network, is_transient
from fedcohort.flower.workers import Job, Workers

T = TypeVar("T")
log = logging.getLogger("flwr.fedcohort")

# All in seconds.
FIRST_PAUSE = 0.1  # before the second try; each further pause is twice as long
LONGEST_PAUSE = 2.0
LEAST_PATIENCE = 1.0  # a call that takes no longer than this is no trouble, however late it is
MOST_TROUBLES = 5  # how many different troubles of one exchange are kept
LONGEST_TROUBLE = 200  # characters


class SuperLinkTrouble(Exception):
    """The SuperLink did not do in time what it was asked."""


class SuperLink:
    """Makes the calls of one grid, one after the other.

    Over the network each call runs on a thread, of which there is one. The simulation engine is in
    the same process and is called directly.

    Args:
        grid: The grid that is called.
        uses_thread: Whether calls over the network get a thread. Not needed on a thread that may
            wait as long as the call takes.

    Attributes:
        troubles: What went wrong since `forget_troubles` was called, each text once.
    """

    def __init__(self, grid: Grid, *, uses_thread: bool = True) -> None:
        self.grid = grid
        self.uses_thread = uses_thread
        self.troubles: list[str] = []
        self._workers = Workers(1)
        self._abandoned: Job[Any] | None = None  # a call that nobody waits for any more
        self._was_in_trouble = False

    def reaches(self, grid: Grid) -> bool:
        """Return whether the calls go to the same grid of Flower as those of another grid."""
        return innermost_grid(grid) is innermost_grid(self.grid)

    def call(self, purpose: str, function: Callable[[], T], end: float) -> T:
        """Return what a function returns that calls the grid; try again until the time is up.

        Args:
            purpose: What the call is for, as a message says it: "pull replies".
            function: Makes the call.
            end: When to give up, on the monotonic clock. The first try is made in any case.

        Raises:
            SuperLinkTrouble: If there was only trouble until the end.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                result = self._call_once(function, end)
            except Exception as error:
                if not is_transient(error):
                    raise
                trouble = self.note_trouble(purpose, error)
                if monotonic() + pause > end:
                    raise SuperLinkTrouble(trouble) from error
            else:
                self._note_success(purpose)
                return result
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def forget_troubles(self) -> None:
        """Begin to collect troubles anew."""
        self.troubles = []

    def _call_once(self, function: Callable[[], T], end: float) -> T:
        if not self.uses_thread or not is_over_network(self.grid):
            return function()
        hangs = self._abandoned is not None and not self._abandoned.is_done
        if not hangs:
            end = max(end, monotonic() + LEAST_PATIENCE)
        job = self._workers.submit(function)
        if job.wait(end):
            return job.result()
        job.is_cancelled = True
        if not hangs:
            self._abandoned = job
        raise TimeoutError("no answer in time")

    def note_trouble(self, purpose: str, error: Exception) -> str:
        """Remember and log an error that may pass; return it as a sentence."""
        reason = str(error) or type(error).__name__
        trouble = f"cannot {purpose}: {reason}"[:LONGEST_TROUBLE]
        if trouble not in self.troubles and len(self.troubles) < MOST_TROUBLES:
            self.troubles.append(trouble)
        if not self._was_in_trouble:
            log.warning("the SuperLink has trouble, trying again: %s", trouble)
        self._was_in_trouble = True
        return trouble

    def _note_success(self, purpose: str) -> None:
        if self._was_in_trouble:
            log.info("the SuperLink answers again (to %s)", purpose)
        self._was_in_trouble = False
