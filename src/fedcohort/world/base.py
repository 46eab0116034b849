"""The two ends of every world: the conditions it is made from, and the rows it yields."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
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
        options: Values of the world's own parameters by name; those left out have defaults.
        knows_offline: Whether the server knows who is offline before it asks, in worlds whose
            clients go offline for a while.
        label_counts: Number of samples of each label that each client owns [S, K, C], for worlds
            whose failures follow the data.
        data_sizes: Number of training samples of each client [S, K], for worlds that time them.
        epochs: Local epochs of each client [S, K], for worlds that time them.
        model_bytes: Size of the model that is sent and returned, for worlds that time clients.
        deadline: Seconds after which an answer is late, for worlds that time clients.
        rounds: Number of rounds that will be played, for worlds that change on the way.

    Raises:
        ValueError: If the number of rounds is given and below 1.
    """

    num_clients: int
    seeds: Sequence[int]
    rates: Sequence[float] = PAPER_RATES
    file: Path | str | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    knows_offline: bool = False
    label_counts: Ints | None = None
    data_sizes: Ints | None = None
    epochs: Ints | None = None
    model_bytes: int | None = None
    deadline: float | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None:
            check_int("rounds", self.rounds, 1)


@dataclass(frozen=True, eq=False)
class World:
    """Who would answer in which round, for S runs and K clients.

    Attributes:
        rows: One array [S, K] per round. Booleans say who answers. Floats say after how many
            seconds, with infinity for never.
        success_rates: How often each client answers in the long run [K], for selectors that may
            know it; [S, K] where it depends on the run. If the rows hold seconds, only answers
            before the deadline count.
        num_rounds: Number of rows, or None if they never end.
        has_seconds: Whether the rows hold seconds instead of answers.
        available: One array [S, K] of bools per round: who is online, which the server knows
            before it asks. None if it does not know.
    """

    rows: Iterator[npt.NDArray[Any]]
    success_rates: Floats
    num_rounds: int | None = None
    has_seconds: bool = False
    available: Iterator[Bools] | None = None

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

    def lasting(self, name: str, rounds: int) -> "World":
        """Return the same world, which refuses to end before its rounds do.

        Args:
            name: Name of the world, for the message.
            rounds: Number of rounds to play. Rows after them may be drawn, too.

        Returns:
            A world with the same rows, read from this one. Drawing a row that is missing, or that
            has another number of clients than the success rates, raises a ValueError.
        """
        num_clients = self.success_rates.shape[-1]
        rows = _lasting(f"world {name!r}", self.rows, rounds, num_clients)
        available = self.available
        if available is not None:
            about = f"available of the world {name!r}"
            available = _lasting(about, available, rounds, num_clients)
        return replace(self, rows=rows, available=available)


def _lasting(
    about: str, rows: Iterator[npt.NDArray[Any]], rounds: int, num_clients: int
) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows; refuse one of other clients, and an end before there were enough."""
    drawn = 0
    for row in rows:
        shape = np.shape(row)
        if shape[-1:] != (num_clients,):
            raise ValueError(
                f"{about} must have rows of {num_clients} clients, got a row of shape {shape}"
            )
        drawn += 1
        yield row
    if drawn < rounds:
        raise ValueError(f"{about} must have {rounds} rounds, got {drawn}")
