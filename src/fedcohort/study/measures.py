"""One row of numbers per run of a block, small enough to commit."""

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.arrays import Floats, Ints
from fedcohort.lab.comparison import Comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.record_checks import CLASS_ACCURACY, LABEL_ACCURACY
from fedcohort.lab.runs import RunKey, run_keys
from fedcohort.metrics import first_at
from fedcohort.study.volatility import Block
from fedcohort.world.durations import local_epochs

Row = dict[str, Any]
FINAL_SHARE = 0.1  # the last tenth of the rounds makes the final accuracy: one round is noisy


def measure(block: Block, comparison: Comparison, model_bytes: int) -> list[Row]:
    """Return one row per run of a block.

    Args:
        block: The block.
        comparison: Its runs.
        model_bytes: Size of the model.
    """
    rows = []
    for position, key in enumerate(run_keys(comparison.config)):
        records = {name: values[:, position] for name, values in comparison.records.items()}
        row: Row = {
            "dataset": block.task,
            "world": block.world,
            "partition": block.partition,
            "selector": key.selector,
            "rule": key.aggregation,
            "seed": key.seed,
        }
        rows.append(row | _measure_run(comparison.config, key, records, model_bytes))
    return rows


def align_columns(rows: Sequence[Row]) -> list[Row]:
    """Return rows that all have the same columns, with nan for what a run did not measure.

    Tables that were written before a measure was added have fewer columns.

    Examples:
        >>> align_columns([{"seed": 0, "final": 0.5}, {"seed": 1, "megabytes": 2.0}])
        [{'seed': 0, 'final': 0.5, 'megabytes': nan}, {'seed': 1, 'final': nan, 'megabytes': 2.0}]
    """
    columns: Row = {}
    for row in rows:
        columns |= dict.fromkeys(row, nan)
    return [columns | row for row in rows]


def curve(comparison: Comparison, selector: str, rule: str) -> tuple[Ints, Floats]:
    """Return the tested rounds [t], counted from 1, and the accuracy [S, t] of a combination."""
    rows = []
    for position, key in enumerate(run_keys(comparison.config)):
        if (key.selector, key.aggregation) == (selector, rule):
            rows.append(position)
    accuracy = comparison.records["accuracy"][:, rows]
    tested = ~np.isnan(accuracy).any(axis=1)
    return np.flatnonzero(tested) + 1, accuracy[tested].T


def _measure_run(
    config: ComparisonConfig, key: RunKey, records: dict[str, Any], model_bytes: int
) -> Row:
    accuracy = records["accuracy"]
    target = config.targets[0]
    rounds = float(first_at(accuracy[:, None], target)[0])
    steps = np.cumsum(_client_steps(config, key, records))
    elapsed = np.cumsum(records["seconds"])
    seconds_to = steps_to = nan
    if not np.isnan(rounds):
        steps_to = float(steps[int(rounds) - 1])
        seconds_to = float(elapsed[int(rounds) - 1])

    asked = int((records["clients"] >= 0).sum())
    memory = 0
    if AGGREGATIONS[key.aggregation].remembers_updates:
        memory = config.clients * model_bytes
    return {
        "target": target,
        "rounds_to_target": rounds,
        "client_steps_to_target": steps_to,
        "seconds_to_target": seconds_to,
        "final": _final(accuracy),
        "worst_class": float(np.nanmin(_final(records[CLASS_ACCURACY]))),
        "worst_label": float(np.nanmin(_final(records[LABEL_ACCURACY]))),
        "success": float(records["valid"].sum() / max(asked, 1)),
        "wasted_work_share": _wasted_work_share(config, key, records),
        # Everyone asked gets a model, and a rejected update was sent back, too.
        "megabytes": 1e-6 * model_bytes * (asked + int(records["arrived"].sum())),
        "memory_megabytes": 1e-6 * memory,
    }


def _final(values: Floats) -> Any:
    """Return the mean over the tested rounds among the last tenth, [...]."""
    first = len(values) - max(1, round(FINAL_SHARE * len(values)))
    last = values[first:]
    tested = np.isfinite(last)
    count = tested.sum(axis=0)
    total = np.where(tested, last, 0.0).sum(axis=0)
    mean = np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
    return float(mean) if mean.ndim == 0 else mean


def _wasted_work_share(config: ComparisonConfig, key: RunKey, records: dict[str, Any]) -> float:
    """Return the client-seconds of updates that did not count as a share of all.

    A client whose update counted has spent the seconds of its epochs. They are not recorded, so
    the share is nan where these seconds have a spread, and where nobody worked.
    """
    if config.jitter:
        return nan
    epochs = local_epochs(config.clients, key.seed, config.epochs)
    seconds = config.seconds_per_epoch * epochs[np.maximum(records["clients"], 0)]
    useful = float((seconds * records["valid"]).sum())
    wasted = float(records["wasted_seconds"].sum())
    if useful + wasted == 0:
        return nan
    return wasted / (useful + wasted)


def _client_steps(config: ComparisonConfig, key: RunKey, records: dict[str, Any]) -> Ints:
    """Return the SGD steps of all clients that arrived in each round [T]."""
    owned = config.samples_per_client or 0
    trained_on = owned - round(config.test_fraction * owned)
    batches = -(-trained_on // config.batch_size)
    epochs = local_epochs(config.clients, key.seed, config.epochs)
    per_client = epochs[np.maximum(records["clients"], 0)] * batches
    return np.asarray((per_client * records["arrived"]).sum(axis=-1))
