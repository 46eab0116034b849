"""Which cells of a table are compared with the paper's, and how far each is from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, isnan, log

import numpy as np

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.cells import Cell, CellKey, Cells, Quantity
from fedcohort.paper.labels import partition_label, update_label
from fedcohort.paper.tables import paper_cell


@dataclass(frozen=True)
class Deviation:
    """How far one cell is from the paper's.

    Attributes:
        values: Ours by world: logs of rounds, or accuracies.
        paper: The paper's value on the same scale.
    """

    values: Mapping[int, float]
    paper: float

    @property
    def mean(self) -> float:
        """Our mean over worlds."""
        return float(np.mean(list(self.values.values())))

    @property
    def size(self) -> float:
        """Distance of our mean from the paper's value."""
        return abs(self.mean - self.paper)


def deviation(cell: Cell, in_logs: bool) -> Deviation:
    """Return how far a cell without a never is from the paper's value."""
    values = dict(zip(cell.seeds, cell.values, strict=True))
    paper = cell.paper or 0.0
    if in_logs:
        values = {seed: log(value) for seed, value in values.items()}
        paper = log(paper)
    return Deviation(values, paper)


def format_size(size: float, in_logs: bool) -> str:
    """Write the size of a deviation: rounds in per cent, accuracies in points, nan as a dash."""
    if isnan(size):
        return "-"
    if in_logs:
        return f"{100 * (exp(size) - 1):.1f} %"
    return f"{100 * size:.2f} points"


def is_scored(cell: Cell) -> bool:
    """Return whether a cell has both values, ours of all its runs, and they can be compared.

    Runs with fewer rounds than the paper's do not tell when they would have reached an accuracy
    that the paper reached later, or never.
    """
    if cell.paper is None or cell.paper > cell.rounds_played:
        return False
    return bool(cell.values) and not cell.pending


def has_never(cell: Cell) -> bool:
    """Return whether the paper's scheme, or one of our runs, never got there."""
    return cell.paper == inf or inf in cell.values


def cells_by_group(cells: Cells) -> dict[str, Cells]:
    """Return the cells of each group: a partition and a local update."""
    groups: dict[str, Cells] = {}
    for key, runs in cells.items():
        group = f"{partition_label(key[1])}, {update_label(key[3])}"
        groups.setdefault(group, {})[key] = runs
    return groups


def cells_of(config: ComparisonConfig, cells: Cells, quantity: Quantity) -> dict[CellKey, Cell]:
    """Return the cells of one quantity, without those of E3CS-inc that repeat E3CS-0."""
    found = {key: paper_cell(config, key, runs, quantity) for key, runs in cells.items()}
    shown = {}
    for key, cell in found.items():
        if not _is_before_turn(config, key, cell, quantity) or not _repeats(cell, found, key):
            shown[key] = cell
    return shown


def _repeats(cell: Cell, found: Mapping[CellKey, Cell], key: CellKey) -> bool:
    """Return whether E3CS-0 has a value in all worlds of a cell."""
    same = found.get(("e3cs-0", *key[1:]))
    return same is not None and set(cell.seeds) <= set(same.seeds)


def _is_before_turn(config: ComparisonConfig, key: CellKey, cell: Cell, quantity: Quantity) -> bool:
    """Return whether all rounds of a cell are of E3CS-inc while it still is E3CS-0."""
    if key[0] != "e3cs-inc" or quantity == "final" or not cell.values:
        return False
    return max(cell.values) <= config.rounds // 4


def comparable_cells(config: ComparisonConfig, cells: Cells, quantity: Quantity) -> list[Cell]:
    """Return the cells of one quantity, of worlds that do not favour fast runs.

    An unfinished run tells its round only if it was fast. So where one does not tell it, all
    cells of the column take those worlds alone in which all schemes are finished.
    """
    shown = cells_of(config, cells, quantity)
    if not any(cell.pending for cell in shown.values()):
        return list(shown.values())
    unfinished = set()
    for runs in cells.values():
        unfinished |= {run.config.first_seed for run in runs if not run.finished}
    finished: Cells = {}
    for key, runs in cells.items():
        finished[key] = [run for run in runs if run.config.first_seed not in unfinished]
    return list(cells_of(config, finished, quantity).values())
