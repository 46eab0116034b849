"""Which program wrote a folder."""

from collections.abc import Collection
from enum import Enum
from pathlib import Path

from fedcohort.lab.folder.comparison import has_comparison
from fedcohort.lab.folder.flower import has_flower_run
from fedcohort.lab.folder.reproduction import has_reproduction
from fedcohort.lab.folder.simulation import has_simulation


class Kind(Enum):
    """What wrote a folder."""

    COMPARISON = "comparison"
    SIMULATION = "simulation"
    FLOWER = "Flower run"
    REPRODUCTION = "reproduction"


def detect_kind(folder: Path, artefacts: Collection[str] = ()) -> Kind | None:
    """Return what wrote a folder, None if nothing of ours did.

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
