"""How the probability of being asked moves: that of every client in about a hundred rounds of the first seed, for a picture."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.files import load_arrays, save_arrays
from fedcohort.lab.folder import Arrays
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Selector

ROUNDS = 100  # looked at, of however many are played
CLIENTS = 2000  # a larger federation fits no picture, and a look would cost more than the round


@dataclass(frozen=True, eq=False)
class Allocations:
    """How likely each client was to be asked, in these rounds [n], counted from 0: inclusion [n, K], who was capped [n, K]."""

    rounds: Ints
    inclusion: Floats
    capped: Bools


@dataclass
class AllocationRecorder:
    """Looks at selectors that can say their probabilities, every so many rounds, before the round is played."""

    rounds: int
    seen: dict[str, dict[int, tuple[npt.NDArray[np.float16], npt.NDArray[np.bool_]]]] = field(
        default_factory=dict
    )

    def look(self, name: str, selector: Selector, round: int) -> None:
        """Remember the first run's probabilities before a round; most rounds are passed over."""
        every = -(-self.rounds // ROUNDS)
        if round % every or selector.num_clients > CLIENTS:
            return
        if not isinstance(selector, BaseSelector) or not selector.has_inclusion:
            return
        now = selector.allocation(round)
        first = (0,) * (now.inclusion.ndim - 1)
        self.seen.setdefault(name, {})[round] = (
            now.inclusion[first].astype(np.float16),
            now.capped[first].copy(),
        )

    def save(self, folder: Path, first_round: int) -> None:
        """Write what was seen since a round; nothing if nothing was."""
        arrays: Arrays = {}
        for name, rows in self.seen.items():
            arrays[f"{name}/rounds"] = np.array(list(rows), dtype=np.int64)
            arrays[f"{name}/inclusion"] = np.stack([row[0] for row in rows.values()])
            arrays[f"{name}/capped"] = np.stack([row[1] for row in rows.values()])
        if arrays:
            save_arrays(folder / "allocations" / f"{first_round:07d}.npz", arrays)


def load_allocations(folder: Path) -> dict[str, Allocations]:
    """Return what was seen, by scheme; a round in two files, as a killed run leaves it, is the same in both."""
    found: dict[str, dict[int, tuple[npt.NDArray[np.float16], npt.NDArray[np.bool_]]]] = {}
    for path in sorted((folder / "allocations").glob("[0-9]*.npz")):
        arrays = load_arrays(path)
        try:
            for name in dict.fromkeys(key.rpartition("/")[0] for key in arrays):
                columns = [arrays[f"{name}/{part}"] for part in ("rounds", "inclusion", "capped")]
                for round, inclusion, capped in zip(*columns, strict=True):
                    found.setdefault(name, {})[int(round)] = inclusion, capped
        except (KeyError, ValueError) as error:
            raise ValueError(f"{path} must hold probabilities of fedcohort, got: {error}") from None
    return {name: _joined(rows) for name, rows in found.items()}


def _joined(rows: dict[int, tuple[npt.NDArray[np.float16], npt.NDArray[np.bool_]]]) -> Allocations:
    order = sorted(rows)
    inclusion, capped = zip(*(rows[round] for round in order), strict=True)
    return Allocations(
        np.array(order, dtype=np.int64), np.stack(inclusion).astype(np.float64), np.stack(capped)
    )
