"""Which program wrote a folder, and whether it can be read."""

from collections.abc import Collection
from enum import Enum
from pathlib import Path

from fedcohort.lab.folder.advice import check_not_advice
from fedcohort.lab.folder.comparison import has_comparison
from fedcohort.lab.folder.flower import has_flower_run
from fedcohort.lab.folder.reproduction import has_reproduction
from fedcohort.lab.folder.shards import has_unmerged_shards
from fedcohort.lab.folder.simulation import has_simulation


class Kind(Enum):
    """What wrote a folder."""

    COMPARISON = "comparison"
    SIMULATION = "simulation"
    FLOWER = "Flower run"
    REPRODUCTION = "reproduction"


def detect_kind(folder: Path, artefacts: Collection[str] = ()) -> Kind | None:
    """Return which run a folder holds, None if it holds none. Advice is no run.

    Args:
        folder: The folder; it need not exist.
        artefacts: Names of the paper's artefacts. A folder with a subfolder of such a name is a
            reproduction, even if nothing else says so.
    """
    if has_comparison(folder):
        return Kind.COMPARISON
    if has_simulation(folder):
        return Kind.SIMULATION
    if has_flower_run(folder):
        return Kind.FLOWER
    if has_reproduction(folder, artefacts):
        return Kind.REPRODUCTION
    return None


def check_takes_comparison(folder: Path) -> None:
    """Refuse a folder that holds a run of another kind, which no comparison may replace.

    Args:
        folder: The folder to write to; it need not exist.

    Raises:
        ValueError: If the folder holds a simulation, a Flower run or a reproduction.
    """
    kind = detect_kind(folder)
    if kind is not None and kind is not Kind.COMPARISON:
        raise ValueError(f"out must not hold a {kind.value}, got {folder}; choose another")


def check_readable(name: str, folder: Path) -> None:
    """Refuse a folder that looks like a run but cannot be shown as one.

    Args:
        name: The argument's name, for the message.
        folder: The folder to read.

    Raises:
        ValueError: If the folder holds advice, or shards that are not merged yet.
    """
    check_not_advice(name, folder)
    if has_unmerged_shards(folder):
        raise ValueError(
            f"{name} must be a run whose shards are finished and merged, got {folder}; "
            "if it was stopped, repeat its command with --resume"
        )
