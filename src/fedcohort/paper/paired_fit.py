"""Which of two networks comes nearer to the paper, in worlds that both were trained in.

Worlds differ, so two networks are compared where they met the same ones: cell by cell, in the
worlds in which both have a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.cells import Cell, Cells
from fedcohort.paper.fit_cells import (
    Deviation,
    cells_by_group,
    cells_of,
    deviation,
    format_size,
)
from fedcohort.paper.labels import heading
from fedcohort.paper.tables import quantities

PAIRED_LEGEND = (
    "Nearer to the paper: each cell takes the worlds in which both networks have a value, and "
    "its deviation is that of the table above. A run that never reaches the accuracy, or has not "
    "yet, has no value. A cell without such a world is left out, and so is one in which the paper "
    "says never."
)


@dataclass(frozen=True)
class Network:
    """One side of the comparison.

    Attributes:
        name: Words for headings.
        config: The comparison that trained it.
        cells: Its runs, of the worlds to compare.
    """

    name: str
    config: ComparisonConfig
    cells: Cells


def paired_rows(first: Network, second: Network) -> list[dict[str, Any]]:
    """Return one row for each group and quantity that both networks have cells of.

    Args:
        first: A network.
        second: Another one, with cells of the same keys.
    """
    rows = []
    groups = cells_by_group(second.cells)
    for group, members in cells_by_group(first.cells).items():
        for quantity in quantities(first.config):
            ours = cells_of(first.config, members, quantity)
            theirs = cells_of(second.config, groups.get(group, {}), quantity)
            pairs = []
            for key in ours:
                if key in theirs:
                    pair = _in_shared_worlds(ours[key], theirs[key], quantity != "final")
                    if pair is not None:
                        pairs.append(pair)
            if pairs:
                names = (first.name, second.name)
                row = {"group": group, "quantity": heading(quantity)}
                rows.append(row | _compare(names, pairs, quantity != "final"))
    return rows


def _in_shared_worlds(
    first: Cell, second: Cell, in_logs: bool
) -> tuple[Deviation, Deviation] | None:
    """Return the deviations of two cells in the worlds of both; None if there are none."""
    values = dict(zip(first.seeds, first.values, strict=True))
    others = dict(zip(second.seeds, second.values, strict=True))
    seeds = []
    for seed in values:
        if seed in others and max(values[seed], others[seed]) < inf:
            seeds.append(seed)
    if first.paper is None or first.paper == inf or first.paper > first.rounds_played:
        return None
    if not seeds:
        return None

    def side(known: Mapping[int, float]) -> Deviation:
        shared = tuple(known[seed] for seed in seeds)
        return deviation(Cell(shared, first.paper, seeds=tuple(seeds)), in_logs)

    return side(values), side(others)


def _compare(
    names: tuple[str, str], pairs: Sequence[tuple[Deviation, Deviation]], in_logs: bool
) -> dict[str, Any]:
    """Return the medians and the largest deviations of both, and how often each is nearer."""
    worlds: set[int] = set()
    for one, _ in pairs:
        worlds |= set(one.values)
    row: dict[str, Any] = {
        "worlds": ", ".join(str(seed) for seed in sorted(worlds)),
        "cells": len(pairs),
    }
    sizes = np.array([[one.size, other.size] for one, other in pairs])
    for side, name in enumerate(names):
        row[f"median, {name}"] = format_size(float(np.median(sizes[:, side])), in_logs)
    for side, name in enumerate(names):
        row[f"worst, {name}"] = format_size(float(sizes[:, side].max()), in_logs)
    for side, name in enumerate(names):
        row[f"nearer, {name}"] = int((sizes[:, side] < sizes[:, 1 - side]).sum())
    return row
