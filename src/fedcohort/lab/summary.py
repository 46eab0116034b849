"""The tables of a comparison and of a simulation: one row per selector, means over seeds."""

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, Ints
from fedcohort.lab.config import ComparisonConfig, SimulationConfig, client_classes
from fedcohort.lab.record_checks import CLASS_ACCURACY, LABEL_ACCURACY
from fedcohort.lab.runs import RunGroup, run_groups
from fedcohort.lab.simulation_result import SimulationResult
from fedcohort.metrics import class_quartiles, first_at, gap, jain, worst
from fedcohort.selection.protocol import NOBODY
from fedcohort.statistics import mean_of_known, sd

Arrays = Mapping[str, npt.NDArray[Any]]
Row = dict[str, Any]


def comparison_rows(config: ComparisonConfig, records: Arrays) -> list[Row]:
    """Return the table of a comparison.

    Args:
        config: The comparison's settings.
        records: Its records [T, runs, ...] by name, as `load_records` returns them.

    Returns:
        One row per partition, aggregation, mu and selector. A target that a run never reached
        makes the mean nan. "worst class", "gap" (in points) and "worst label" are there if the
        accuracy was recorded by class of clients and by label.
    """
    rows = []
    for group in run_groups(config):
        for selector, runs in group.rows.items():
            own = {name: values[:, runs] for name, values in records.items()}
            rows.append(_comparison_row(config, group, selector, own))
    return rows


def _comparison_row(
    config: ComparisonConfig, group: RunGroup, selector: str, records: Arrays
) -> Row:
    row: Row = {"partition": group.partition, "aggregation": group.aggregation}
    if group.shows_mu:
        row["mu"] = group.mu
    row["selector"] = selector

    accuracy = records["accuracy"]
    elapsed = np.cumsum(records["seconds"], axis=0)
    for target in config.targets:
        rounds = first_at(accuracy, target)
        row[f"rounds to {target:g}"] = float(rounds.mean())
        row[f"time to {target:g}"] = float(_seconds_at(rounds, elapsed).mean())

    counts = count_asked(records["clients"], config.clients)
    row["final"] = float(accuracy[-1].mean())
    row["sd"] = sd(accuracy[-1])
    row |= _left_out(records)
    row["success"] = success_share(records["valid"].sum(), counts.sum())
    row["Jain"] = float(jain(counts).mean())
    row["wasted s"] = float(records["wasted_seconds"].sum(axis=0).mean())
    row["wasted MB"] = float(records["wasted_bytes"].sum(axis=0).mean() / 1e6)
    return row


def _left_out(records: Arrays) -> Row:
    """Return how well the final models do for the classes and labels that they serve worst.

    Means over seeds come first: the lowest of single values would be low by chance.
    """
    row: Row = {}
    by_class = records.get(CLASS_ACCURACY)
    if by_class is not None and by_class.shape[-1] > 1:
        means = mean_of_known(by_class[-1].astype(np.float64))
        row["worst class"] = float(worst(means))
        row["gap"] = 100 * float(gap(means))
    by_label = records.get(LABEL_ACCURACY)
    if by_label is not None:
        means = mean_of_known(by_label[-1].astype(np.float64))
        row["worst label"] = float(worst(means))
    return row


def _seconds_at(rounds: Floats, elapsed: Floats) -> Floats:
    """Return the time at which each run had played so many rounds; nan where it never did."""
    seconds = np.full(rounds.shape, np.nan)
    for run, count in enumerate(rounds):
        if not np.isnan(count):
            seconds[run] = elapsed[int(count) - 1, run]
    return seconds


def count_asked(clients: Ints, num_clients: int) -> Ints:
    """Return how often each run asked each client.

    Args:
        clients: Who was asked [T, runs, k]; `NOBODY` is not counted.
        num_clients: Number of clients, K.

    Returns:
        Counts [runs, K].

    Examples:
        >>> clients = np.array([[[0, 2]], [[2, -1]]])  # two rounds of one run
        >>> count_asked(clients, num_clients=3).tolist()
        [[1, 0, 2]]
    """
    counts = []
    for run in clients.swapaxes(0, 1):
        counts.append(np.bincount(run[run != NOBODY], minlength=num_clients))
    return np.stack(counts)


def success_share(used: float, asked: float) -> float:
    """Return the share of updates asked for that were used; nan if nobody was ever asked."""
    return float(used / asked) if asked else nan


def accuracy_curves(config: ComparisonConfig, records: Arrays) -> dict[str, dict[str, Floats]]:
    """Return accuracy [S, T] by group of runs and selector, for the figures."""
    curves: dict[str, dict[str, Floats]] = {}
    for group in run_groups(config):
        curves[group.label] = {}
        for selector, runs in group.rows.items():
            curves[group.label][selector] = records["accuracy"][:, runs].T
    return curves


def simulation_rows(config: SimulationConfig, results: Mapping[str, SimulationResult]) -> list[Row]:
    """Return the table of a simulation.

    Args:
        config: The simulation's settings.
        results: What came of each selector.

    Returns:
        One row per selector. "asked, by class" is how often the median client of each class was
        asked, the first class first.
    """
    classes = client_classes(config)
    rows = []
    for name, result in results.items():
        cep = result.successes.sum(axis=-1)
        asked = float(result.counts.sum(axis=-1).mean())
        medians = class_quartiles(result.counts, classes)[:, 1]
        row: Row = {
            "selector": name,
            "success ratio": success_share(cep.mean(), asked),
            "CEP": float(cep.mean()),
            "CEP sd": sd(cep.astype(np.float64)),
            "Jain": float(jain(result.counts).mean()),
            "asked, by class": "/".join(f"{median:.0f}" for median in medians),
        }
        rows.append(row)
    return rows
