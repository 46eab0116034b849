"""What a page shows of a comparison."""

from typing import Any

import numpy as np

from fedcohort.lab.comparison import Comparison
from fedcohort.lab.config import (
    ComparisonConfig,
    SimulationConfig,
    client_classes,
    has_classes,
)
from fedcohort.lab.folder import Arrays
from fedcohort.lab.runs import group_label, run_groups
from fedcohort.lab.summary import comparison_rows, count_asked
from fedcohort.reports.findings import Findings, Scheme


def findings(comparison: Comparison) -> Findings:
    """Return what a comparison shows, as far as it was played.

    Raises:
        ValueError: If no round was played yet.
    """
    of = comparison.config
    records = comparison.records
    if not records:
        raise ValueError(
            f"{comparison.folder} must hold the records of at least one round, got none yet"
        )
    done = comparison.rounds_done
    tested = np.flatnonzero(~np.isnan(records["accuracy"]).all(axis=1))
    records = {
        name: values[: tested[-1] + 1 if tested.size else done] for name, values in records.items()
    }
    rows, found = comparison_rows(of, records), kinds(of, records)
    about = f"{of.dataset}, {of.model}, {of.clients} clients, {of.cohort} asked per round, {of.rounds} rounds"
    return Findings(
        title=f"Client selection compared: {about}",
        kinds=found,
        tables=tables(of, rows),
        targets=dict.fromkeys(found, of.targets),
        rates=of.rates if has_classes(of) else (),
        classes=client_classes(of) if has_classes(of) else None,
        allocations=comparison.allocations,
        owners=comparison.label_counts,
        lead=lead(of, done),
        notes=(
            "Means over seeds; ± is one standard deviation. A dash: not reached in every run, or not known.",
            "Schemes are compared seed by seed, in the same worlds: a difference is beyond the spread over seeds if its mean "
            "over seeds is beyond the one-sided 95 % limit of Student's t.",
        ),
        settings=of.as_dict(),
        seeds=seeds_in_words(of.first_seed, of.seeds),
        environment={name: str(value) for name, value in comparison.environment.items()},
    )


def lead(of: ComparisonConfig, done: int) -> list[str]:
    """Say what was played: what failed, and how far the run is."""
    failures = describe_failures(of)
    said = [f"{failures} {of.seeds} seeds; every scheme meets the same failures."]
    if of.seeds == 1:
        said = [f"{failures} One seed: differences may be chance."]
    if done < of.rounds:
        said.append(f"Not finished: {done} of {of.rounds} rounds are played.")
    return said


def describe_failures(config: ComparisonConfig | SimulationConfig) -> str:
    """Return how clients fail, in one sentence."""
    if not has_classes(config):
        return f"Clients fail as recorded in {config.world_file}."
    rates = ", ".join(f"{rate:.0%}" for rate in config.rates)
    return f"Clients fail: by class, they answer {rates} of the time."


def kinds(of: ComparisonConfig, records: Arrays) -> dict[str, dict[str, Scheme]]:
    """Return the schemes by partition, rule and mu, as far as there are several."""
    found: dict[str, dict[str, Scheme]] = {}
    for group in run_groups(of):
        found[group.label] = {}
        for name in of.selectors:
            found[group.label][name] = scheme(of, records, group.rows[name], group.seeds)
    return found


def scheme(of: ComparisonConfig, records: Arrays, rows: list[int], seeds: list[int]) -> Scheme:
    """Return some runs of the batch axis as one scheme."""
    clients = records["clients"][:, rows]
    counts = count_asked(clients, of.clients)
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
        kind = group_label(row["partition"], row["aggregation"], row.get("mu"))
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
