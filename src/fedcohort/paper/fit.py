"""How near our cells come to the paper's, in numbers instead of thresholds.

Rounds are compared by the logarithm of ours over the paper's, final accuracies in points. Where
the paper says "never", or one of our worlds never got there, only "never" on both sides agrees.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.cells import Cell, Cells, Quantity, prediction_factor
from fedcohort.paper.fit_cells import (
    Deviation,
    cells_by_group,
    comparable_cells,
    deviation,
    format_size,
    has_never,
    is_scored,
)
from fedcohort.paper.labels import describe_range
from fedcohort.paper.tables import quantities

SCORES_LEGEND = (
    "Fit to the paper: the deviation of a cell is the distance of our mean over worlds from the "
    "paper's value, for rounds as exp|log(ours/paper)| - 1 in % with the geometric mean, for "
    "final accuracies in points. Inside: cells whose published value lies in the 95 % prediction "
    "interval of one more world, mean ± t·s·√(1 + 1/n). The standard deviation s from world to "
    "world is pooled over the cells of a column of the reading, in each group over those with the "
    "most worlds, two or more. Cells of one world move together, so s has fewer degrees of freedom "
    "than so many independent cells (df: their effective number, from column to column). Cells "
    "with a never on one side only are outside. Both say never: cells with a never on either side "
    "that have it in the paper and in all our worlds. n: worlds, from column to column. Where an "
    "unfinished run has not reached an accuracy, the column counts those worlds alone in which "
    "all schemes are finished: otherwise it would count fast runs and leave out slow ones. A "
    "column in which no two worlds show how far worlds differ has no interval, and its cells are "
    "not counted as inside or outside. Until a quarter of the rounds E3CS-inc is E3CS-0: where "
    "it reaches an accuracy before, the two are one cell, that of E3CS-0."
)


@dataclass(frozen=True)
class Spread:
    """The spread from world to world.

    Attributes:
        sd: Standard deviation.
        degrees: Effective degrees of freedom; 0 if it is not known.
    """

    sd: float
    degrees: float


@dataclass(frozen=True)
class Score:
    """The fit of a set of cells.

    Attributes:
        cells: Cells that can be compared, those with a never too.
        median: Median deviation of the cells without a never; nan if there are none.
        worst: Largest deviation of these; nan if there are none.
        inside: Cells inside the prediction interval of one more world; None without a spread.
        judged: Cells that can be inside: those with a spread, and those with a never.
        nevers: Cells with a never on either side.
        nevers_agree: Those of them that are never on both.
    """

    cells: int
    median: float
    worst: float
    inside: int | None
    judged: int
    nevers: int
    nevers_agree: int


def score(cells: Sequence[tuple[Cell, Spread]], in_logs: bool) -> Score | None:
    """Return how well cells fit the paper; None if there is nothing to compare.

    Args:
        cells: Cells of one kind of quantity with the paper's values, each with the spread of its
            quantity.
        in_logs: Whether they hold rounds, which are compared in logs.
    """
    nevers = 0
    agree = 0
    inside = 0
    sizes = []
    intervals = 0
    for cell, spread in cells:
        if not is_scored(cell):
            continue
        if has_never(cell):
            nevers += 1
            agree += cell.paper == inf and set(cell.values) == {inf}
            continue
        one = deviation(cell, in_logs)
        sizes.append(one.size)
        if spread.degrees:
            intervals += 1
            inside += _is_inside(one, spread)
    if not sizes and not nevers:
        return None
    return Score(
        cells=len(sizes) + nevers,
        median=float(np.median(sizes)) if sizes else nan,
        worst=max(sizes, default=nan),
        inside=None if sizes and not intervals else inside + agree,
        judged=intervals + nevers,
        nevers=nevers,
        nevers_agree=agree,
    )


def pooled_spread(groups: Iterable[Sequence[Deviation]]) -> Spread:
    """Return the spread from world to world, pooled over the cells of one quantity.

    It contains what a world does to all schemes alike, since one more world would have that too.
    For the same reason cells of a group are correlated. With a common correlation r, m cells are
    worth m / (1 + (m - 1) r^2) independent ones: so many degrees each world beyond the first has.

    Args:
        groups: The cells of each group of runs. In a group those count that have the same worlds
            as the cell with the most.
    """
    squares = 0.0
    of_sums = 0.0
    extra = 0.0
    worlds = 0
    cells = 0
    for group in groups:
        seeds = max((sorted(one.values) for one in group), key=len, default=[])
        count = len(seeds)
        if count < 2:
            continue
        rows = []
        for one in group:
            if sorted(one.values) == seeds:
                rows.append([one.values[seed] for seed in seeds])
        moves = np.array(rows) - np.mean(rows, axis=1, keepdims=True)  # [cells, worlds]
        squares += float((moves**2).sum())
        of_sums += float((moves.sum(axis=0) ** 2).sum())
        extra += (len(rows) - 1) * float((moves**2).sum())
        worlds += count - 1
        cells += len(rows) * (count - 1)
    if not cells:
        return Spread(0.0, 0)
    # The square of a sum of m cells is m (1 + (m - 1) r) times that of one, on average.
    correlation = 0.0
    if extra:
        correlation = min(1.0, max(0.0, (of_sums - squares) / extra))
    per_world = cells / worlds
    degrees = cells / (1 + (per_world - 1) * correlation**2)
    return Spread(sqrt(squares / cells), degrees)


def _is_inside(one: Deviation, spread: Spread) -> bool:
    return one.size <= prediction_factor(len(one.values), spread.degrees) * spread.sd


def score_rows(config: ComparisonConfig, cells: Cells, all_worlds: Cells) -> list[dict[str, Any]]:
    """Return one row per group and kind of quantity: rounds, then final accuracies.

    Args:
        config: The comparison.
        cells: The runs to score.
        all_worlds: The runs of all worlds, which give the spread from world to world.

    Returns:
        Rows for a table; none for groups without runs or without published values.
    """
    spreads: dict[Quantity, Spread] = {}
    for quantity in quantities(config):
        groups = []
        for others in cells_by_group(all_worlds).values():
            groups.append(_known_deviations(config, others, quantity))
        spreads[quantity] = pooled_spread(groups)

    rows = []
    for group, members in cells_by_group(cells).items():
        for kind in ("rounds", "final"):
            in_logs = kind == "rounds"
            own = [quantity for quantity in spreads if (quantity != "final") == in_logs]
            with_spreads = []
            degrees = []
            worlds = []
            for quantity in own:
                spread = spreads[quantity]
                shown = comparable_cells(config, members, quantity)
                with_spreads += [(cell, spread) for cell in shown]
                worlds += [len(cell.values) for cell in shown if is_scored(cell)]
                has_values = any(is_scored(cell) and not has_never(cell) for cell in shown)
                if has_values and spread.degrees:
                    degrees.append(spread.degrees)  # of the columns that have an interval
            found = score(with_spreads, in_logs)
            if found is not None:
                rows.append(
                    {"group": group, "n": describe_range(worlds)} | _row(kind, found, degrees)
                )
    return rows


def _known_deviations(
    config: ComparisonConfig, cells: Cells, quantity: Quantity
) -> list[Deviation]:
    """Return the deviations of the cells that have a value of the paper and no never."""
    known = []
    for cell in comparable_cells(config, cells, quantity):
        if cell.paper is not None and cell.values and not has_never(cell):
            known.append(deviation(cell, in_logs=quantity != "final"))
    return known


def _row(kind: str, result: Score, degrees: Sequence[float]) -> dict[str, Any]:
    """Write a score."""
    in_logs = kind == "rounds"
    inside = "-"
    if result.inside is not None:
        inside = f"{result.inside} of {result.judged}"
    nevers = "-"
    if result.nevers:
        nevers = f"{result.nevers_agree} of {result.nevers}"
    return {
        "quantity": kind,
        "cells": result.cells,
        "median": format_size(result.median, in_logs),
        "worst": format_size(result.worst, in_logs),
        "inside": inside,
        "df": describe_range(degrees),
        "both say never": nevers,
    }
