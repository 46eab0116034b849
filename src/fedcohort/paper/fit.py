"""How near our cells come to the paper's, in numbers instead of thresholds.

Rounds are compared by the logarithm of ours over the paper's, final accuracies in points. Where
the paper says "never", or one of our worlds never got there, only "never" on both sides agrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.cells import Cell, Cells
from fedcohort.paper.labels import partition_label, update_label
from fedcohort.paper.tables import paper_cell, quantities
from fedcohort.students_t import t_quantile

SCORES_LEGEND = (
    "Fit to the paper: the deviation of a cell is the distance of our mean over worlds from the "
    "paper's value, for rounds as exp|log(ours/paper)| - 1 in % with the geometric mean, for "
    "final accuracies in points. Inside: cells whose published value lies in the 95 % prediction "
    "interval of one more world, mean ± t·s·√(1 + 1/n). The standard deviation s from world to "
    "world is pooled over all cells of the reading that have two worlds or more (df: its degrees "
    "of freedom); cells with a never on one side only are outside. Never "
    "agrees: cells with a never on either side that have it in the paper and in all our worlds."
)


@dataclass(frozen=True)
class Deviation:
    """How far one cell is from the paper's.

    Attributes:
        values: Ours, one per world: logs of rounds, or accuracies.
        paper: The paper's value on the same scale.
    """

    values: tuple[float, ...]
    paper: float

    @property
    def mean(self) -> float:
        """Our mean over worlds."""
        return float(np.mean(self.values))

    @property
    def size(self) -> float:
        """Distance of our mean from the paper's value."""
        return abs(self.mean - self.paper)


@dataclass(frozen=True)
class Score:
    """The fit of a set of cells.

    Attributes:
        cells: Cells that can be compared, those with a never too.
        median: Median deviation of the cells without a never.
        worst: Largest deviation of these.
        inside: Cells inside the prediction interval of one more world; None without a spread.
        nevers: Cells with a never on either side.
        nevers_agree: Those of them that are never on both.
        degrees: Degrees of freedom of the spread.
    """

    cells: int
    median: float
    worst: float
    inside: int | None
    nevers: int
    nevers_agree: int
    degrees: int


def score(cells: Sequence[Cell], in_logs: bool, spread: float, degrees: int) -> Score | None:
    """Return how well cells fit the paper; None if there is nothing to compare.

    Args:
        cells: Cells of one kind of quantity, with the paper's values.
        in_logs: Whether they hold rounds, which are compared in logs.
        spread: Standard deviation from world to world; see `pooled_spread`.
        degrees: Its degrees of freedom; 0 if it is not known.
    """
    known = [cell for cell in cells if cell.paper is not None and cell.values and not cell.pending]
    if not known:
        return None
    nevers = [cell for cell in known if _has_never(cell)]
    agree = sum(cell.paper == inf and set(cell.values) == {inf} for cell in nevers)
    deviations = [deviation(cell, in_logs) for cell in known if not _has_never(cell)]
    inside = None
    if degrees:
        inside = agree + sum(_is_inside(one, spread, degrees) for one in deviations)
    sizes = [one.size for one in deviations]
    return Score(
        cells=len(known),
        median=float(np.median(sizes)) if sizes else 0.0,
        worst=max(sizes, default=0.0),
        inside=inside,
        nevers=len(nevers),
        nevers_agree=agree,
        degrees=degrees,
    )


def _has_never(cell: Cell) -> bool:
    return cell.paper == inf or inf in cell.values


def deviation(cell: Cell, in_logs: bool) -> Deviation:
    """Return how far a cell without a never is from the paper's value."""
    paper = cell.paper or 0.0
    if in_logs:
        return Deviation(tuple(log(value) for value in cell.values), log(paper))
    return Deviation(cell.values, paper)


def pooled_spread(deviations: Sequence[Deviation]) -> tuple[float, int]:
    """Return the standard deviation from world to world over all cells, and its degrees.

    It contains what a world does to all schemes alike, since one more world would have that too.
    """
    squares = 0.0
    degrees = 0
    for one in deviations:
        squares += sum((value - one.mean) ** 2 for value in one.values)
        degrees += len(one.values) - 1
    if not degrees:
        return 0.0, 0
    return sqrt(squares / degrees), degrees


def _is_inside(one: Deviation, spread: float, degrees: int) -> bool:
    margin = t_quantile(0.975, degrees) * spread * sqrt(1 + 1 / len(one.values))
    return one.size <= margin


def score_rows(config: ComparisonConfig, cells: Cells, all_worlds: Cells) -> list[dict[str, Any]]:
    """Return one row per group and kind of quantity: rounds, then final accuracies.

    Args:
        config: The comparison.
        cells: The runs to score.
        all_worlds: The runs of all worlds, which give the spread from world to world.

    Returns:
        Rows for a table; none for groups without runs or without published values.
    """
    groups: dict[str, Cells] = {}
    for key, runs in cells.items():
        group = f"{partition_label(key[1])}, {update_label(key[3])}"
        groups.setdefault(group, {})[key] = runs
    rows = []
    for group, members in groups.items():
        for kind in ("rounds", "final"):
            in_logs = kind == "rounds"
            known = []
            for cell in _cells_of(config, all_worlds, in_logs):
                if cell.paper is not None and cell.values and not _has_never(cell):
                    known.append(deviation(cell, in_logs))
            spread, degrees = pooled_spread(known)
            found = score(_cells_of(config, members, in_logs), in_logs, spread, degrees)
            if found is not None:
                worlds = max(len(runs) for runs in members.values())
                rows.append({"group": group, "n": worlds} | _row(kind, found))
    return rows


def _cells_of(config: ComparisonConfig, cells: Cells, in_logs: bool) -> list[Cell]:
    """Return the cells of first rounds, or those of final accuracies."""
    names = [name for name in quantities(config) if (name != "final") == in_logs]
    found = []
    for key, runs in cells.items():
        found += [paper_cell(config, key, runs, name) for name in names]
    return found


def _row(kind: str, result: Score) -> dict[str, Any]:
    """Write a score: rounds in per cent, accuracies in points."""

    def text(size: float) -> str:
        if kind == "rounds":
            return f"{100 * (exp(size) - 1):.1f} %"
        return f"{100 * size:.2f} points"

    inside = "-"
    if result.inside is not None:
        inside = f"{result.inside} of {result.cells} ({result.degrees} df)"
    nevers = "-"
    if result.nevers:
        nevers = f"{result.nevers_agree} of {result.nevers}"
    return {
        "quantity": kind,
        "cells": result.cells,
        "median": text(result.median),
        "worst": text(result.worst),
        "inside": inside,
        "never agrees": nevers,
    }
