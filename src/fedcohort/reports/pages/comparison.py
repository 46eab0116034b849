"""The page of a comparison: schemes that trained on the same federations."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.files import load_arrays
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig, run_keys, summary
from fedcohort.lab.recorder import load_allocations
from fedcohort.lab.records import read_config, read_records
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.pages.wording import list_rates, list_seeds
from fedcohort.world.classes import class_of

NOTES = (
    "Means over seeds. ± is one standard deviation. A dash: not reached in every run, or unknown.",
    "Schemes are compared seed by seed, because runs with the same seed meet the same failures. A "
    "difference is beyond the spread over seeds if its mean over seeds is beyond the one-sided "
    "95 % limit of Student's t.",
)
# Columns of the summary that the page shows in its headings or joined with another column.
NOT_COPIED = ("partition", "aggregation", "mu", "selector", "final", "sd")


def findings(folder: Path) -> Findings:
    """Return what the page of a comparison shows, as far as the comparison was played.

    Args:
        folder: The run folder.

    Raises:
        ValueError: If no round was played yet.
    """
    config = read_config(folder)
    records = read_records(folder, config)
    if not records:
        raise ValueError(f"{folder} must hold the records of at least one round, got none yet")

    rounds_done = len(records["accuracy"])
    records = _up_to_last_test(records)
    kinds = _schemes_by_kind(config, records)
    size = f"{config.clients} clients, {config.cohort} asked per round, {config.rounds} rounds"
    owners = folder / "owners.npz"
    return Findings(
        title=f"Client selection compared: {config.dataset}, {config.model}, {size}",
        kinds=kinds,
        tables=_tables(config, summary(config, records)),
        targets=dict.fromkeys(kinds, config.targets),
        rates=config.rates,
        classes=class_of(config.clients, len(config.rates)),
        allocations=load_allocations(folder),
        owners=load_arrays(owners) if owners.exists() else {},
        lead=_lead(config, rounds_done),
        notes=NOTES,
        settings=config.as_dict(),
        seeds=list_seeds(config.first_seed, config.seeds),
        environment=environment(folder),
    )


def _up_to_last_test(records: run_folder.Arrays) -> run_folder.Arrays:
    """Return the records up to the last round with a test, so that a final accuracy is known."""
    tested = np.flatnonzero(~np.isnan(records["accuracy"]).all(axis=1))
    if not tested.size:
        return records
    return {name: values[: tested[-1] + 1] for name, values in records.items()}


def _lead(config: ComparisonConfig, rounds_done: int) -> list[str]:
    """Say how often clients fail, how many seeds there are, and how far the run is."""
    seeds = f"{config.seeds} seeds. Every scheme meets the same failures."
    if config.seeds == 1:
        seeds = "One seed, so differences may be chance."
    sentences = [
        f"Clients fail: by class, they answer {list_rates(config.rates)} of the time. {seeds}"
    ]
    if rounds_done < config.rounds:
        sentences.append(f"Not finished: {rounds_done} of {config.rounds} rounds are played.")
    return sentences


def _schemes_by_kind(
    config: ComparisonConfig, records: run_folder.Arrays
) -> dict[str, dict[str, Scheme]]:
    keys = run_keys(config)
    kinds: dict[str, dict[str, Scheme]] = {}
    for partition, aggregation, mu, selector in product(
        config.partitions, config.aggregations, config.mus, config.selectors
    ):
        wanted = (partition, aggregation, mu, selector)
        rows = []
        for row, key in enumerate(keys):
            if (key.partition, key.aggregation, key.mu, key.selector) == wanted:
                rows.append(row)
        seeds = [keys[row].seed for row in rows]
        kind = _kind(config, partition, aggregation, mu)
        kinds.setdefault(kind, {})[selector] = _scheme(config, records, rows, seeds)
    return kinds


def _kind(config: ComparisonConfig, partition: str, aggregation: str, mu: float) -> str:
    """Return the name of a kind of run."""
    name = f"{partition} data, {aggregation} rule"
    if len(config.mus) > 1:
        name += f", mu {mu:g}"
    return name


def _scheme(
    config: ComparisonConfig, records: run_folder.Arrays, rows: Sequence[int], seeds: Sequence[int]
) -> Scheme:
    """Return the runs in these rows of the batch axis as one scheme."""
    clients = records["clients"][:, rows]
    counts = []
    for run in clients.swapaxes(0, 1):
        counts.append(np.bincount(run.ravel(), minlength=config.clients))
    successes = records["valid"][:, rows].sum(axis=-1).T.astype(np.float64)
    return Scheme(
        seeds=seeds,
        asked=np.full(successes.shape, float(config.cohort)),
        successes=successes,
        counts=np.stack(counts),
        accuracy=records["accuracy"][:, rows].T,
        seconds=records["seconds"][:, rows].T,
        wasted=records["wasted_seconds"][:, rows].sum(axis=0),
    )


def _tables(
    config: ComparisonConfig, rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the summary by kind of run: scheme and accuracy first, then the other columns."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        mu = row.get("mu", config.mus[0])
        kind = _kind(config, row["partition"], row["aggregation"], mu)
        accuracy = f"{row['final']:.3f}"
        if not isnan(row["sd"]):
            accuracy += f" ± {row['sd']:.3f}"

        shown = {"scheme": row["selector"], "final accuracy": accuracy}
        for name, value in row.items():
            if name not in NOT_COPIED:
                shown[name] = value
        tables.setdefault(kind, []).append(shown)
    return tables


def environment(folder: Path) -> Mapping[str, str]:
    """Return the versions and the machine of a run, if its folder has them."""
    path = folder / "environment.json"
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} must be the environment of a run, got: {error}") from None
    if not isinstance(stored, dict):
        return {}
    return {str(name): str(value) for name, value in stored.items()}
