"""The page of a comparison: schemes that trained on the same federations."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import Comparison
from fedcohort.lab.config import ComparisonConfig, client_classes, has_classes
from fedcohort.lab.named_parts import data_and_model, labelled, selector_labels
from fedcohort.lab.record_checks import CLASS_ACCURACY, LABEL_ACCURACY
from fedcohort.lab.runs import group_label, run_groups
from fedcohort.lab.summary import comparison_rows, count_asked
from fedcohort.reports.candidates import Candidate, Cases
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.pages.training_answer import (
    PAPERS,
    UNIFORM,
    order_kinds,
    training_answer,
)
from fedcohort.reports.pages.wording import describe_failures, list_seeds
from fedcohort.reports.words import counted, three_digits
from fedcohort.selection.protocol import NOBODY

NOTES = (
    "Means over seeds. ± is one standard deviation. A dash: not reached in every run, or unknown.",
    "Schemes are compared seed by seed, because runs with the same seed meet the same failures. A "
    "difference is beyond the spread over seeds if Student's t tells it from zero at the "
    "5\u00a0% level, two-sided, with the noise that effects of all schemes and seeds leave, and "
    "corrected by Holm's method for all pairs of schemes.",
)
# Columns of the summary that the page shows in its headings, joined with another, or not at all.
NOT_COPIED = ("partition", "aggregation", "mu", "selector", "final", "sd", "worst label")


def findings(comparison: Comparison) -> Findings:
    """Return what the page of a comparison shows, as far as the comparison was played.

    Args:
        comparison: The comparison, loaded from its run folder.

    Raises:
        ValueError: If no round was played yet.
    """
    config = comparison.config
    if not comparison.records:
        raise ValueError(
            f"{comparison.folder} must hold the records of at least one round, got none yet"
        )

    records = _up_to_last_test(comparison.records)
    kinds = _schemes_by_kind(config, records)
    cases = _cases(config, kinds)
    answer = training_answer(cases, comparison.class_rates)
    kinds_in_order = order_kinds(kinds, cases)
    tables = _tables(comparison_rows(config, records))
    clients = counted(config.clients, "client")
    rates: Sequence[float] = ()
    if has_classes(config):
        rates = comparison.class_rates or config.rates  # folders of older versions have none
    size = f"{clients}, {config.cohort:,} asked per round, {counted(config.rounds, 'round')}"
    return Findings(
        title=f"Client selection compared: {data_and_model(config)}, {size}",
        kinds=kinds_in_order,
        answer=answer,
        tables={kind: tables[kind] for kind in kinds_in_order},
        targets=dict.fromkeys(kinds, config.targets),
        rates=rates,
        classes=client_classes(config) if has_classes(config) else None,
        class_rates=comparison.class_rates,
        allocations=labelled(comparison.allocations, config),
        owners=comparison.label_counts,
        lead=_lead(config, comparison.rounds_done),
        notes=NOTES,
        settings=config.as_dict(),
        seeds=list_seeds(config.first_seed, config.seeds),
        environment=comparison.environment,
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
    sentences = [f"{describe_failures(config)}. {seeds}"]
    if rounds_done < config.rounds:
        sentences.append(f"Not finished: {rounds_done} of {config.rounds} rounds are played.")
    return sentences


def _schemes_by_kind(
    config: ComparisonConfig, records: run_folder.Arrays
) -> dict[str, dict[str, SchemeResults]]:
    kinds: dict[str, dict[str, SchemeResults]] = {}
    for group in run_groups(config):
        kinds[group.label] = {}
        for selector, rows in group.rows.items():
            kinds[group.label][selector] = _scheme(config, records, rows, group.seeds)
    return kinds


def _cases(config: ComparisonConfig, kinds: Mapping[str, Mapping[str, SchemeResults]]) -> Cases:
    """Return the candidates by partition: selectors with the rules that they were tried with."""
    groups = run_groups(config)
    labels = selector_labels(config)
    papers = {labels[name] for name in PAPERS if name in labels}
    has_rules = len(config.aggregations) * len(config.mus) > 1
    cases: dict[str, list[Candidate]] = {}
    for group in groups:
        rule = f"{group.aggregation} rule"
        if group.shows_mu:
            rule += f", mu {group.mu:g}"
        for selector, scheme in kinds[group.label].items():
            candidate = Candidate(
                name=f"{selector}, {rule}" if has_rules else selector,
                selector=selector,
                rule=rule,
                kind=group.label,
                scheme=scheme,
                is_uniform=selector == labels.get(UNIFORM),
                is_papers=selector in papers,
            )
            cases.setdefault(f"{group.partition} data", []).append(candidate)
    return cases


def _scheme(
    config: ComparisonConfig, records: run_folder.Arrays, rows: Sequence[int], seeds: Sequence[int]
) -> SchemeResults:
    """Return the runs in these rows of the batch axis as one scheme."""
    class_accuracy = None
    if CLASS_ACCURACY in records:
        class_accuracy = records[CLASS_ACCURACY][-1, rows].astype(np.float64)
    label_accuracy = None
    if LABEL_ACCURACY in records:
        label_accuracy = records[LABEL_ACCURACY][-1, rows].astype(np.float64)
    clients = records["clients"][:, rows]
    successes = records["valid"][:, rows].sum(axis=-1).T.astype(np.float64)
    return SchemeResults(
        seeds=seeds,
        asked=(clients != NOBODY).sum(axis=-1).T.astype(np.float64),
        successes=successes,
        counts=count_asked(clients, config.clients),
        accuracy=records["accuracy"][:, rows].T,
        seconds=records["seconds"][:, rows].T,
        wasted=records["wasted_seconds"][:, rows].sum(axis=0),
        class_accuracy=class_accuracy,
        label_accuracy=label_accuracy,
    )


def _tables(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the summary by kind of run: scheme and accuracy first, then the other columns."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kind = group_label(row["partition"], row["aggregation"], row.get("mu"))
        accuracy = three_digits(row["final"])
        if not isnan(row["sd"]):
            accuracy += f" ± {row['sd']:.3f}"

        shown = {"scheme": row["selector"], "final accuracy": accuracy}
        for name, value in row.items():
            if name not in NOT_COPIED:
                shown[name] = value
        tables.setdefault(kind, []).append(shown)
    return tables
