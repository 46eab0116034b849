"""Scalars of a comparison for TensorBoard or MLflow: one run there per selector and group.

Scalars are means over seeds. They are written with each checkpoint, before it: rounds that a
resumed run plays again are written again, and none is missing.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.checks import check_choice
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import aggregation_labels, selector_labels
from fedcohort.lab.runs import run_keys
from fedcohort.selection.protocol import NOBODY

Scalars = dict[str, list[tuple[int, float]]]  # (round, value), by name
WriteScalars = Callable[[str, Scalars], None]  # the name of the run to write to, its scalars
OnCheckpoint = Callable[[int, run_folder.Arrays], None]  # first round, the records from there
NEEDS = {  # module, extra
    "tensorboard": ("tensorboardX", "tracking"),
    "mlflow": ("mlflow", "mlflow"),
}
EXPERIMENT = "fedcohort"  # its name in MLflow
BATCH_SIZE = 1000  # the most metrics that MLflow takes at once


def check_installed(kind: str) -> None:
    """Refuse a library that is not installed, before anything is begun."""
    module, extra = NEEDS[check_choice("log", kind, NEEDS)]
    is_blocked = module in sys.modules and sys.modules[module] is None
    is_missing = module not in sys.modules and find_spec(module) is None
    if is_blocked or is_missing:
        raise ValueError(f"log {kind} needs {module}: pip install 'fedcohort[{extra}]'")


@contextmanager
def track(kind: str, config: ComparisonConfig, folder: Path, done: int) -> Iterator[OnCheckpoint]:
    """Yield the callback that writes the scalars of new records.

    Args:
        kind: "tensorboard" or "mlflow".
        config: The comparison's settings.
        folder: Its run folder.
        done: How many rounds were done when the run began or went on.
    """
    backend = BACKENDS[check_choice("log", kind, BACKENDS)]
    with backend(config, folder, done) as write_scalars:
        records = run_folder.load_records(folder, done) if done else {}

        def on_checkpoint(first: int, chunk: run_folder.Arrays) -> None:
            nonlocal records
            if records:
                joined = {}
                for name in chunk:
                    joined[name] = np.concatenate([records[name][:first], chunk[name]])
                records = joined
            else:
                records = dict(chunk)
            for name, rows in tracked_runs(config).items():
                own = {part: values[:, rows] for part, values in records.items()}
                write_scalars(name, compute_scalars(own, first))

        yield on_checkpoint


def tracked_runs(config: ComparisonConfig) -> dict[str, list[int]]:
    """Return the rows of the batch axis by the name of their run in TensorBoard or MLflow."""
    selectors = selector_labels(config)
    aggregations = aggregation_labels(config)
    runs: dict[str, list[int]] = {}
    for row, key in enumerate(run_keys(config)):
        words = [key.partition, aggregations[key.aggregation]]
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


@contextmanager
def _tensorboard(config: ComparisonConfig, folder: Path, done: int) -> Iterator[WriteScalars]:
    from tensorboardX import SummaryWriter

    writers = {}
    for name in tracked_runs(config):
        writers[name] = SummaryWriter(
            str(folder / "tensorboard" / name.replace(" ", "-")),
            purge_step=done + 1,
            # Two files that are made within one second must not share a name.
            filename_suffix=f".{done:07d}",
        )

    def write_scalars(name: str, scalars: Scalars) -> None:
        for tag, points in scalars.items():
            for step, value in points:
                writers[name].add_scalar(tag, value, step)
        writers[name].flush()

    try:
        yield write_scalars
    finally:
        for writer in writers.values():
            writer.close()


@contextmanager
def _mlflow(config: ComparisonConfig, folder: Path, done: int) -> Iterator[WriteScalars]:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    folder.mkdir(parents=True, exist_ok=True)
    own_database = f"sqlite:///{folder.resolve() / 'mlflow.db'}"
    client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or own_database)
    runs = _resume_or_create_runs(client, config, folder, done)

    def write_scalars(name: str, scalars: Scalars) -> None:
        metrics = []
        for tag, points in scalars.items():
            for step, value in points:
                metrics.append(Metric(tag, value, 0, step))
        for start in range(0, len(metrics), BATCH_SIZE):
            client.log_batch(runs[name], metrics=metrics[start : start + BATCH_SIZE])

    try:
        yield write_scalars
    except BaseException:
        for run in runs.values():
            client.set_terminated(run, "KILLED")
        raise
    for run in runs.values():
        client.set_terminated(run)


def _resume_or_create_runs(
    client: Any, config: ComparisonConfig, folder: Path, done: int
) -> dict[str, str]:
    """Return the ids of MLflow's runs: the stored ones of a resumed comparison, or new ones."""
    from mlflow.entities import Param

    names = tracked_runs(config)
    stored = run_folder.read_mlflow_runs(folder) if done else {}
    if set(stored) == set(names):
        for run in stored.values():
            client.update_run(run, status="RUNNING")
        return stored

    existing = client.get_experiment_by_name(EXPERIMENT)
    experiment = existing.experiment_id if existing else client.create_experiment(EXPERIMENT)
    params = [Param(key, str(value)) for key, value in config.as_dict().items()]
    runs = {}
    for name in names:
        runs[name] = client.create_run(experiment, run_name=name).info.run_id
        client.log_batch(runs[name], params=params)
    run_folder.write_mlflow_runs(folder, runs)
    return runs


BACKENDS = {"tensorboard": _tensorboard, "mlflow": _mlflow}
