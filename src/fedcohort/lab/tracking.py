"""Scalars of a comparison for TensorBoard or MLflow: one run there per scheme and kind of run, means over seeds.

They are written with each checkpoint, before it: rounds that a resumed run plays again are written again, and none is missing.
"""

import json
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
from fedcohort.files import atomic_write
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig, run_keys
from fedcohort.lab.records import read_records
from fedcohort.lab.trial import Saved

Scalars = dict[str, list[tuple[int, float]]]  # (round, value), by name
Write = Callable[[str, Scalars], None]  # to a run by name
NEEDS = {
    "tensorboard": ("tensorboardX", "tracking"),
    "mlflow": ("mlflow", "mlflow"),
}  # module, extra
BATCH = 1000  # metrics that MLflow takes at once


def installed(kind: str) -> None:
    """Refuse a library that is not there, before anything is begun."""
    module, extra = NEEDS[check_choice("log", kind, NEEDS)]
    if sys.modules.get(module, ...) is None or (
        module not in sys.modules and find_spec(module) is None
    ):
        raise ValueError(f"log {kind} needs {module}: pip install 'fedcohort[{extra}]'")


@contextmanager
def tracked(kind: str, of: ComparisonConfig, folder: Path, done: int) -> Iterator[Saved]:
    """Yield what is to be told of records as they are saved; kind: tensorboard or mlflow."""
    with BACKENDS[check_choice("log", kind, BACKENDS)](of, folder, done) as write:
        before = read_records(folder, of, done) if done else {}

        def saved(first: int, chunk: rundir.Arrays) -> None:
            nonlocal before
            before = (
                {name: np.concatenate([before[name][:first], chunk[name]]) for name in chunk}
                if before
                else dict(chunk)
            )
            for name, rows in groups(of).items():
                write(
                    name, scalars({part: values[:, rows] for part, values in before.items()}, first)
                )

        yield saved


def groups(of: ComparisonConfig) -> dict[str, list[int]]:
    """Return the rows of the batch axis by scheme and kind of run."""
    found: dict[str, list[int]] = {}
    for row, place in enumerate(run_keys(of)):
        mu = f" mu={place.mu:g}" if len(of.mus) > 1 else ""
        found.setdefault(f"{place.partition} {place.aggregation}{mu} {place.selector}", []).append(
            row
        )
    return found


def scalars(records: rundir.Arrays, first: int) -> Scalars:
    """Return what is told of the rounds from `first` on, counted from 1: sums over all rounds so far, means over seeds."""
    used = np.cumsum(records["valid"].sum(axis=-1), axis=0)
    rounds = np.arange(1, len(used) + 1)
    curves: dict[str, Floats] = {
        "accuracy": records["accuracy"],
        "loss": records["loss"],
        "success_ratio": used / (rounds[:, None] * records["valid"].shape[-1]),
        "cep": used,
        "seconds": np.cumsum(records["seconds"], axis=0),
        "wasted_seconds": np.cumsum(records["wasted_seconds"], axis=0),
    }
    means = {name: values.mean(axis=1) for name, values in curves.items()}
    return {
        name: [
            (int(r), float(v))
            for r, v in zip(rounds[first:], mean[first:], strict=True)
            if np.isfinite(v)
        ]
        for name, mean in means.items()
    }


@contextmanager
def _tensorboard(of: ComparisonConfig, folder: Path, done: int) -> Iterator[Write]:
    from tensorboardX import SummaryWriter

    home = folder / "tensorboard"
    more = {
        "purge_step": done + 1,
        "filename_suffix": f".{done:07d}",
    }  # two files of one second must not share a name
    writers = {
        name: SummaryWriter(str(home / name.replace(" ", "-")), **more) for name in groups(of)
    }

    def write(name: str, values: Scalars) -> None:
        for tag, points in values.items():
            for step, value in points:
                writers[name].add_scalar(tag, value, step)
        writers[name].flush()

    try:
        yield write
    finally:
        for writer in writers.values():
            writer.close()


@contextmanager
def _mlflow(of: ComparisonConfig, folder: Path, done: int) -> Iterator[Write]:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    folder.mkdir(parents=True, exist_ok=True)
    client = MlflowClient(
        os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder.resolve() / 'mlflow.db'}"
    )
    runs = _runs(
        client, of, folder, [Param(key, str(value)) for key, value in of.as_dict().items()], done
    )

    def write(name: str, values: Scalars) -> None:
        metrics = [
            Metric(tag, value, 0, step) for tag, points in values.items() for step, value in points
        ]
        for start in range(0, len(metrics), BATCH):
            client.log_batch(runs[name], metrics=metrics[start : start + BATCH])

    try:
        yield write
    except BaseException:
        for run in runs.values():
            client.set_terminated(run, "KILLED")
        raise
    for run in runs.values():
        client.set_terminated(run)


def _runs(
    client: Any, of: ComparisonConfig, folder: Path, params: list[Any], done: int
) -> dict[str, str]:
    """Return the ids of MLflow's runs: those that the folder remembers if it is gone on with, or new ones."""
    path = folder / "mlflow.json"
    if done and path.exists():
        kept = json.loads(path.read_text())
        if set(kept) == set(groups(of)):
            for run in kept.values():
                client.update_run(run, status="RUNNING")
            return dict(kept)
    found = client.get_experiment_by_name("fedcohort")
    experiment = found.experiment_id if found else client.create_experiment("fedcohort")
    runs = {name: client.create_run(experiment, run_name=name).info.run_id for name in groups(of)}
    for run in runs.values():
        client.log_batch(run, params=params)
    with atomic_write(path) as draft:
        draft.write_text(json.dumps(runs, indent=2) + "\n")
    return runs


BACKENDS = {"tensorboard": _tensorboard, "mlflow": _mlflow}
