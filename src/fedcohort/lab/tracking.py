"""Scalars of a comparison for libraries that draw curves, by selector and group.

Scalars are means over seeds. They are written with each checkpoint, before it: rounds that a
resumed run plays again are written again, and none is missing. A library that cannot write (a
server that is down, a full disk) is warned of once and left out; it never ends a training.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import aggregation_labels, partition_labels, selector_labels
from fedcohort.lab.runs import run_keys
from fedcohort.lab.trackers import Scalars, TrackedRuns, track_scalars
from fedcohort.selection.protocol import NOBODY

logger = logging.getLogger("fedcohort")
OnCheckpoint = Callable[[int, run_folder.Arrays], None]  # first round, the records from there


@contextmanager
def track(kind: str, config: ComparisonConfig, folder: Path, done: int) -> Iterator[OnCheckpoint]:
    """Yield the callback that writes the scalars of new records.

    Args:
        kind: "tensorboard", "mlflow" or "wandb".
        config: The comparison's settings.
        folder: Its run folder.
        done: How many rounds were done when the run began or went on.
    """
    runs = TrackedRuns(tuple(tracked_runs(config)), config.as_dict(), folder, done)
    library = ExitStack()
    write_scalars = library.enter_context(track_scalars(kind, runs))
    records = run_folder.load_records(folder, done) if done else {}
    has_failed = False

    def on_checkpoint(first: int, chunk: run_folder.Arrays) -> None:
        nonlocal records, has_failed
        if has_failed:
            return
        if records:
            joined = {}
            for name in chunk:
                joined[name] = np.concatenate([records[name][:first], chunk[name]])
            records = joined
        else:
            records = dict(chunk)
        try:
            for name, rows in tracked_runs(config).items():
                own = {part: values[:, rows] for part, values in records.items()}
                write_scalars(name, compute_scalars(own, first))
        except Exception as error:  # whatever a library raises must not end the training
            has_failed = True
            _warn(kind, error)

    try:
        yield on_checkpoint
    finally:
        try:
            library.__exit__(*sys.exc_info())
        except Exception as error:
            if not has_failed:
                _warn(kind, error)


def _warn(kind: str, error: Exception) -> None:
    logger.warning(
        "log %s fails, and the run goes on without it: %s: %s", kind, type(error).__name__, error
    )


def tracked_runs(config: ComparisonConfig) -> dict[str, list[int]]:
    """Return the rows of the batch axis by the name of their tracked run."""
    selectors = selector_labels(config)
    aggregations = aggregation_labels(config)
    partitions = partition_labels(config)
    runs: dict[str, list[int]] = {}
    for row, key in enumerate(run_keys(config)):
        words = [partitions[key.partition], aggregations[key.aggregation]]
        if len(config.mus) > 1:
            words.append(f"mu={key.mu:g}")
        words.append(selectors[key.selector])
        runs.setdefault(" ".join(words), []).append(row)
    return runs


def compute_scalars(records: run_folder.Arrays, first: int) -> Scalars:
    """Return the scalars of some runs, means over seeds.

    Args:
        records: Records [T, runs, ...] of all rounds so far, by name.
        first: The first round to return, counted from 0.

    Returns:
        Pairs of round, counted from 1, and value; rounds without a value are left out.
    """
    used = np.cumsum(records["valid"].sum(axis=-1), axis=0)
    asked = np.cumsum((records["clients"] != NOBODY).sum(axis=-1), axis=0)
    rounds = np.arange(1, len(used) + 1)
    curves: dict[str, Floats] = {
        "accuracy": records["accuracy"],
        "loss": records["loss"],
        "success_ratio": used / np.where(asked > 0, asked, np.nan),
        "cep": used,
        "seconds": np.cumsum(records["seconds"], axis=0),
        "wasted_seconds": np.cumsum(records["wasted_seconds"], axis=0),
    }
    scalars: Scalars = {}
    for name, values in curves.items():
        mean = values.mean(axis=1)
        scalars[name] = []
        for round, value in zip(rounds[first:], mean[first:], strict=True):
            if np.isfinite(value):
                scalars[name].append((int(round), float(value)))
    return scalars
