"""The updates that a comparison remembers: a file per checkpoint, with changed rows."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.files import load_state, save_state

UPDATE_MEMORY = "memory"
PARTS = ("round", "places", "updates")


def save_memory(
    folder: Path, round: int, places: npt.NDArray[Any], updates: npt.NDArray[Any]
) -> None:
    """Write the updates that changed before a checkpoint.

    Args:
        folder: The run folder.
        round: Rounds done at the checkpoint.
        places: Run and client of each update [n, 2].
        updates: The updates [n, P].
    """
    state = {"round": round, "places": places, "updates": updates}
    save_state(_path(folder, round), state)


def load_memory(folder: Path, round: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the updates that `save_memory` wrote at a checkpoint.

    Raises:
        ValueError: If the file is missing, damaged, or of another checkpoint.
    """
    path = _path(folder, round)
    state = load_state(path, PARTS)
    places, updates = state["places"], state["updates"]
    is_arrays = isinstance(places, np.ndarray) and isinstance(updates, np.ndarray)
    if state["round"] != round or not is_arrays or places.dtype.kind != "i":
        raise ValueError(
            f"{path} must hold the updates remembered at round {round}, got those of "
            f"round {state['round']!r}"
        )
    return places, updates


def discard_memory(folder: Path, keep: Collection[int] = ()) -> None:
    """Remove the files of all checkpoints but some."""
    kept = {_path(folder, round).name for round in keep}
    for path in (folder / UPDATE_MEMORY).glob("*.safetensors"):
        if path.name not in kept:
            path.unlink()


def _path(folder: Path, round: int) -> Path:
    return folder / UPDATE_MEMORY / f"{round:07d}.safetensors"
