"""What a page shows of a comparison."""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.files import load_arrays
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig, run_keys, summary
from fedcohort.lab.recorder import load_allocations
from fedcohort.lab.records import read_config, read_records
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.world.classes import class_of


def findings(folder: Path) -> Findings:
    """Return what a run folder holds, as far as it was played; one without a single round is refused."""
    of = read_config(folder)
    records = read_records(folder, of)
    if not records:
        raise ValueError(f"{folder} must hold the records of at least one round, got none yet")
    done = len(records["accuracy"])
    tested = np.flatnonzero(~np.isnan(records["accuracy"]).all(axis=1))
    records = {
        name: values[: tested[-1] + 1 if tested.size else done] for name, values in records.items()
    }
    rows, found = summary(of, records), kinds(of, records)
    owners = folder / "owners.npz"
    about = f"{of.dataset}, {of.model}, {of.clients} clients, {of.cohort} asked per round, {of.rounds} rounds"
    return Findings(
        title=f"Client selection compared: {about}",
        kinds=found,
        tables=tables(of, rows),
        targets=dict.fromkeys(found, of.targets),
        rates=of.rates,
        classes=class_of(of.clients, len(of.rates)),
        allocations=load_allocations(folder),
        owners=load_arrays(owners) if owners.exists() else {},
        lead=lead(of, done),
        notes=(
            "Means over seeds; ± is one standard deviation. A dash: not reached in every run, or not known.",
            "Schemes are compared seed by seed, in the same worlds: a difference is beyond the spread over seeds if its mean "
            "over seeds is beyond the one-sided 95 % limit of Student's t.",
        ),
        settings=of.as_dict(),
        seeds=seeds_in_words(of.first_seed, of.seeds),
        environment=environment(folder),
    )


def lead(of: ComparisonConfig, done: int) -> list[str]:
    """Say what was played: what failed, and how far the run is."""
    rates = ", ".join(f"{rate:.0%}" for rate in of.rates)
    said = [
        f"Clients fail: by class, they answer {rates} of the time. {of.seeds} seeds; every scheme meets the same failures."
    ]
    if of.seeds == 1:
        said = [
            f"Clients fail: by class, they answer {rates} of the time. One seed: differences may be chance."
        ]
    if done < of.rounds:
        said.append(f"Not finished: {done} of {of.rounds} rounds are played.")
    return said


def kinds(of: ComparisonConfig, records: rundir.Arrays) -> dict[str, dict[str, Scheme]]:
    """Return the schemes by partition, rule and mu, as far as there are several."""
    runs = run_keys(of)
    found: dict[str, dict[str, Scheme]] = {}
    for key in product(of.partitions, of.aggregations, of.mus, of.selectors):
        rows = [
            row
            for row, p in enumerate(runs)
            if (p.partition, p.aggregation, p.mu, p.selector) == key
        ]
        found.setdefault(kind_of(of, *key[:3]), {})[key[3]] = scheme(
            of, records, rows, [runs[row].seed for row in rows]
        )
    return found


def kind_of(of: ComparisonConfig, partition: str, aggregation: str, mu: float) -> str:
    """Return the name of a kind of run."""
    return f"{partition} data, {aggregation} rule" + (f", mu {mu:g}" if len(of.mus) > 1 else "")


def scheme(
    of: ComparisonConfig, records: rundir.Arrays, rows: list[int], seeds: list[int]
) -> Scheme:
    """Return some runs of the batch axis as one scheme."""
    clients = records["clients"][:, rows]
    counts = np.stack(
        [np.bincount(run.ravel(), minlength=of.clients) for run in clients.swapaxes(0, 1)]
    )
    successes = records["valid"][:, rows].sum(axis=-1).T.astype(np.float64)
    return Scheme(
        seeds=seeds,
        asked=np.full(successes.shape, float(clients.shape[-1])),
        successes=successes,
        counts=counts,
        accuracy=records["accuracy"][:, rows].T,
        seconds=records["seconds"][:, rows].T,
        wasted=records["wasted_seconds"][:, rows].sum(axis=0),
    )


def tables(of: ComparisonConfig, rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the summary by kind of run: the scheme first, accuracy with its spread next."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kind = kind_of(of, row["partition"], row["aggregation"], row.get("mu", of.mus[0]))
        final = f"{row['final']:.3f}" + ("" if np.isnan(row["sd"]) else f" ± {row['sd']:.3f}")
        rest = {
            name: v
            for name, v in row.items()
            if name not in ("partition", "aggregation", "mu", "selector", "final", "sd")
        }
        found.setdefault(kind, []).append(
            {"scheme": row["selector"], "final accuracy": final, **rest}
        )
    return found


def seeds_in_words(first: int, count: int) -> str:
    """Return which seeds were played."""
    return str(first) if count == 1 else f"{first} to {first + count - 1}"


def environment(folder: Path) -> Mapping[str, str]:
    """Return what a run was computed with, if that was kept."""
    path = folder / "environment.json"
    try:
        kept = json.loads(path.read_text()) if path.exists() else {}
    except ValueError as error:
        raise ValueError(f"{path} must be the environment of a run, got: {error}") from None
    return {str(name): str(value) for name, value in kept.items()} if isinstance(kept, dict) else {}
