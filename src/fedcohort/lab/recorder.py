"""How likely each client was to be asked, recorded in about a hundred rounds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.lab import folder as run_folder
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Selector

MAX_ROUNDS = 100  # rounds recorded, of however many are played
MAX_CLIENTS = 2000  # more fit no figure, and recording them would take longer than the round
PARTS = ("rounds", "inclusion", "capped")

# Probability of being asked and whether it is capped at 1, each [K], by round.
Rows = dict[int, tuple[npt.NDArray[np.float16], npt.NDArray[np.bool_]]]


@dataclass(frozen=True, eq=False)
class Allocations:
    """How likely each client was to be asked, in n rounds.

    Attributes:
        rounds: The rounds [n], counted from 0.
        inclusion: Probability that each client is asked [n, K].
        capped: Whether that probability is capped at 1 [n, K].
    """

    rounds: Ints
    inclusion: Floats
    capped: Bools


@dataclass
class AllocationRecorder:
    """Records the probabilities of selectors before a round, every so many rounds.

    Attributes:
        rounds: How many rounds are played.
        rows: What was recorded since the last save, by name of the selector.
    """

    rounds: int
    rows: dict[str, Rows] = field(default_factory=dict)

    def record(
        self, name: str, selector: Selector, round: int, available: Bools | None = None
    ) -> None:
        """Record the first run's probabilities before a round.

        Nothing is recorded in most rounds, of selectors without probabilities, and of very large
        federations.

        Args:
            name: The selector's name.
            selector: The selector.
            round: The round, counted from 0.
            available: Who is online [K]; None if everybody may be asked.
        """
        interval = -(-self.rounds // MAX_ROUNDS)
        if round % interval or selector.num_clients > MAX_CLIENTS:
            return
        if not isinstance(selector, BaseSelector) or not selector.has_inclusion:
            return
        allocation = selector.allocation(round, available)
        first_run = (0,) * (allocation.inclusion.ndim - 1)
        inclusion = allocation.inclusion[first_run].astype(np.float16)
        capped = allocation.capped[first_run].copy()
        self.rows.setdefault(name, {})[round] = (inclusion, capped)

    def record_online(
        self, available: Iterable[Bools], selectors: Mapping[int, tuple[str, Selector]], start: int
    ) -> Iterator[Bools]:
        """Yield rows of who is online, and record the probabilities among them before each round.

        Args:
            available: Rows [R, K] of who is online, one per round.
            selectors: Name and selector of single runs, by the run's row.
            start: First round to record. Rounds before it were recorded when they were played.
        """
        for round, online in enumerate(available):
            if round >= start:
                for row, (name, selector) in selectors.items():
                    self.record(name, selector, round, online[row])
            yield online

    def save(self, folder: Path, first_round: int) -> None:
        """Write what was recorded since a round, and forget it; nothing if nothing was."""
        arrays: run_folder.Arrays = {}
        for name, rows in self.rows.items():
            arrays[f"{name}/rounds"] = np.array(list(rows), dtype=np.int64)
            arrays[f"{name}/inclusion"] = np.stack([inclusion for inclusion, _ in rows.values()])
            arrays[f"{name}/capped"] = np.stack([capped for _, capped in rows.values()])
        if arrays:
            run_folder.save_allocations(folder, first_round, arrays)
        self.rows = {}


def read_allocations(folder: Path) -> dict[str, Allocations]:
    """Return the recorded probabilities of a run folder, by selector.

    A killed run may leave a round in two files; it is the same in both.

    Raises:
        ValueError: If a file holds something else.
    """
    recorded: dict[str, Rows] = {}
    for path, arrays in run_folder.load_allocations(folder):
        try:
            for name in dict.fromkeys(key.rpartition("/")[0] for key in arrays):
                columns = [arrays[f"{name}/{part}"] for part in PARTS]
                _check_columns(*columns)
                for round, inclusion, capped in zip(*columns, strict=True):
                    recorded.setdefault(name, {})[int(round)] = (inclusion, capped)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{path} must hold probabilities of fedcohort, got: {error}") from None
    return {name: _join(rows) for name, rows in recorded.items()}


def _check_columns(rounds: Ints, inclusion: Floats, capped: Bools) -> None:
    kinds = f"{rounds.dtype.kind}{inclusion.dtype.kind}{capped.dtype.kind}"
    shapes = (rounds.shape, inclusion.shape, capped.shape)
    is_table = rounds.ndim == 1 and inclusion.ndim == 2 and inclusion.shape == capped.shape
    if not is_table or kinds not in ("ifb", "ufb"):
        raise ValueError(f"rounds, inclusion and capped of shapes {shapes} and kinds {kinds}")


def _join(rows: Rows) -> Allocations:
    rounds = sorted(rows)
    inclusion = np.stack([rows[round][0] for round in rounds])
    capped = np.stack([rows[round][1] for round in rounds])
    return Allocations(np.array(rounds, dtype=np.int64), inclusion.astype(np.float64), capped)
