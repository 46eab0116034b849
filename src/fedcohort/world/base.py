"""The two ends of every world: the conditions it is made from, and the rows it yields."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.checks import check_int
from fedcohort.world.classes import PAPER_RATES


@dataclass(frozen=True)
class Conditions:
    """What a world is made from; each kind of world reads only the fields it needs.

    Attributes:
        num_clients: Number of clients, K.
        seeds: One seed per run. S runs are played together.
        rates: Success rate of each class of clients (see `class_rates`).
        file: File with recorded rounds (see `fedcohort.world.trace.read_trace`).
    """

    num_clients: int
    seeds: Sequence[int]
    rates: Sequence[float] = PAPER_RATES
    file: Path | str | None = None


@dataclass(frozen=True, eq=False)
class World:
    """Who would answer in which round, for S runs and K clients.

    Attributes:
        rows: One array [S, K] per round. Booleans say who answers. Floats say after how many
            seconds, with infinity for never.
        success_rates: How often each client answers [K], for selectors that may know it.
        num_rounds: Number of rows, or None if they never end.
        has_seconds: Whether the rows hold seconds instead of answers.
    """

    rows: Iterator[npt.NDArray[Any]]
    success_rates: Floats
    num_rounds: int | None = None
    has_seconds: bool = False

    def check_rounds(self, rounds: int) -> None:
        """Refuse to play more rounds than this world has.

        Args:
            rounds: Number of rounds to play.

        Raises:
            ValueError: If the world has fewer rows than that.
        """
        check_int("rounds", rounds, 0)
        if self.num_rounds is not None and rounds > self.num_rounds:
            raise ValueError(
                f"rounds must be at most {self.num_rounds}, because the world has "
                f"{self.num_rounds} recorded rounds, got {rounds}"
            )
