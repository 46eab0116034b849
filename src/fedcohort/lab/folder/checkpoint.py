"""The checkpoint of a comparison or of a Flower run, and the one before it.

Both are there at every moment: a new checkpoint is written completely before the last one becomes
the previous one. A damaged checkpoint is never replaced by the previous one silently. It is
refused by name, and `recover_checkpoint` sets it aside when the user asks for that.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fedcohort.checks import check_int
from fedcohort.files import atomic_write, load_state, read_plain_state, save_state
from fedcohort.lab.folder.shared import free_name

CHECKPOINT = "checkpoint.safetensors"
PREVIOUS_CHECKPOINT = "checkpoint.previous.safetensors"
DAMAGED_CHECKPOINT = "checkpoint.damaged-{}.safetensors"

# Signature and round of the checkpoints that this process wrote or read.
_rounds: dict[Path, tuple[tuple[int, int, int], Any]] = {}


def save_checkpoint(folder: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state of arrays and plain values as the folder's checkpoint.

    The checkpoint before becomes the previous one, unless it is of the same round. One that is
    damaged is set aside.
    """
    path = folder / CHECKPOINT
    previous = None
    if path.exists():
        previous = _name_for_replaced(folder, state.get("round"))
    save_state(path, state, previous)
    _remember(path, state.get("round"))


def load_checkpoint(folder: Path, names: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the state of the checkpoint, None if there is none and none before it.

    Args:
        folder: The run folder.
        names: Names that the state must hold.

    Raises:
        ValueError: If the checkpoint is damaged, lacks one of the names or has no valid round,
            or if only the previous one is there.
    """
    path = folder / CHECKPOINT
    if not has_checkpoint(folder):
        return None
    try:
        state = load_state(path, names)
    except ValueError as error:
        raise ValueError(f"{error}; {_advice(folder)}") from None
    if "round" in names:
        check_int(f"round in {path}", state["round"], 0)
    _remember(path, state.get("round"))
    return state


def has_checkpoint(folder: Path) -> bool:
    """Return whether a folder has a checkpoint, the last one or the one before."""
    return any((folder / name).exists() for name in (CHECKPOINT, PREVIOUS_CHECKPOINT))


def recover_checkpoint(folder: Path) -> Path | None:
    """Put the previous checkpoint in the place of one that is damaged or missing.

    A good checkpoint stays, and a folder without any is left alone.

    Returns:
        Where the damaged checkpoint is now; None if nothing was set aside.

    Raises:
        ValueError: If the previous checkpoint is damaged or missing, too.
    """
    path = folder / CHECKPOINT
    previous = folder / PREVIOUS_CHECKPOINT
    if not has_checkpoint(folder) or _is_readable(path):
        return None
    load_state(previous)
    is_damaged = path.exists()
    aside = free_name(folder, DAMAGED_CHECKPOINT)
    with atomic_write(path, aside) as draft:
        draft.write_bytes(previous.read_bytes())
    return aside if is_damaged else None


def _name_for_replaced(folder: Path, round: Any) -> Path | None:
    """Return the name under which the checkpoint that is replaced is kept, None for no name."""
    path = folder / CHECKPOINT
    known = _rounds.get(path)
    if known is not None and known[0] == _signature(path):
        replaced_round = known[1]
    else:
        try:
            replaced_round = read_plain_state(path).get("round")
        except ValueError:
            return free_name(folder, DAMAGED_CHECKPOINT)
    if round is not None and replaced_round == round:
        return None
    return folder / PREVIOUS_CHECKPOINT


def _remember(path: Path, round: Any) -> None:
    """Remember the round of a good checkpoint, so that it need not be read to be replaced."""
    _rounds[path] = _signature(path), round


def _signature(path: Path) -> tuple[int, int, int]:
    """Return what tells a file from another one under the same name."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _advice(folder: Path) -> str:
    try:
        state = read_plain_state(folder / PREVIOUS_CHECKPOINT)
    except ValueError:
        return "there is no good one before it"
    return (
        "--from-previous (on Flower from_previous=True) goes on from the one before it, "
        f"after round {state.get('round')}"
    )


def _is_readable(path: Path) -> bool:
    try:
        load_state(path)
    except ValueError:
        return False
    return True
