"""The state from which a server resumes: a file for the last round, and the one before it.

A file is written completely or not at all, and opening it cannot run code. The first one is of
round 0, so that a folder with a journal and no checkpoint has lost it. The journal of the rounds
is in `journal.py`; `fedcohort.lab.folder` knows the names of all files.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from typing import Any

import numpy as np

from fedcohort.flower.models import Model
from fedcohort.lab import folder as run_folder

CHECKPOINTS = 4  # two generations with what the strategy keeps, about as large as the model each
SPARE_BYTES = 1_000_000  # for the journal and the rest


def check_space(folder: Path, model: Model) -> None:
    """Notice a folder that is full or cannot be written before anybody is waited for.

    Raises:
        ValueError: If a checkpoint would not fit into the folder.
    """
    needed = CHECKPOINTS * sum(array.nbytes for array in model.values()) + SPARE_BYTES
    probe = folder / ".space"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = disk_usage(folder).free
        probe.write_bytes(b"0")
        probe.unlink()
    except OSError as error:
        raise ValueError(f"folder must be one to write to, got {folder}: {error}") from None
    if free < needed:
        raise ValueError(
            f"folder must have room for {needed:,} bytes, got {folder} with {free:,} free"
        )


def save(folder: Path, state: dict[str, Any]) -> None:
    """Write the state after a round; the one before it is kept as the previous one."""
    run_folder.save_checkpoint(folder, state)


def load(
    folder: Path, resume: bool, initial: Model, from_previous: bool = False
) -> dict[str, Any] | None:
    """Return the state to resume from; None if the folder holds none.

    A run that ended before its first round was played begins anew unless it is to be resumed.

    Args:
        folder: Folder of the run.
        resume: Whether the user wants to resume.
        initial: The model that the run is started with, for its names, types and shapes.
        from_previous: Whether to take the state before the last one, if the last one is damaged
            or missing.

    Raises:
        ValueError: If there is a state but `resume` is false, if the state is damaged or has
            another model, or if it is missing although rounds were played.
    """
    if from_previous:
        run_folder.recover_checkpoint(folder)
    state = run_folder.load_flower_checkpoint(folder)
    if state is None or (state["round"] == 0 and not resume):
        return None
    if not resume:
        raise ValueError(
            f"folder must not hold a run unless resume is true, "
            f"got {folder} after round {state['round']}"
        )

    given = _describe_arrays(initial)
    saved = _describe_arrays(state["model"])
    for name in [*given, *saved]:
        if given.get(name) != saved.get(name):
            raise ValueError(
                f"{folder} must hold a checkpoint of this model, got another: {name!r} is "
                f"{given.get(name, 'absent')} here and {saved.get(name, 'absent')} there"
            )
    return state


@contextmanager
def restoring(folder: Path | None) -> Iterator[None]:
    """Turn whatever a strange state makes the block raise into an error that names its file."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        reason = error if isinstance(error, ValueError) else repr(error)
        path = Path(folder or "") / run_folder.CHECKPOINT
        raise ValueError(f"{path} must be a checkpoint of this run, got: {reason}") from None


def check_same_run(folder: Path | None, state: dict[str, Any], about: dict[str, str]) -> None:
    """Check that a run resumes with the parts that it began with."""
    for name, saved in state.get("about", {}).items():
        if saved != about.get(name):
            raise ValueError(
                f"{name} must be as in the rounds before, {saved!r}, to resume {folder}, "
                f"got {about.get(name)!r}"
            )


def _describe_arrays(model: Model) -> dict[str, str]:
    described = {}
    for name, array in model.items():
        described[name] = type(array).__name__
        if isinstance(array, np.ndarray):
            described[name] = f"{array.dtype}{list(array.shape)}"
    return described
