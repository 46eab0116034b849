"""The checkpoint of a comparison or of a Flower run."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fedcohort.files import load_state, save_state

CHECKPOINT = "checkpoint.safetensors"


def save_checkpoint(folder: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state of arrays and plain values as the folder's checkpoint."""
    save_state(folder / CHECKPOINT, state)


def load_checkpoint(folder: Path, names: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the state of the checkpoint, None if there is none.

    Args:
        folder: The run folder.
        names: Names that the state must hold.

    Raises:
        ValueError: If the checkpoint is damaged or lacks one of the names.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    return load_state(path, names)
