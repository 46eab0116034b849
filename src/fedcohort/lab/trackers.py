"""Scalars by round for TensorBoard, MLflow and Weights & Biases, behind one function.

`track_scalars` opens the runs of a library and yields a function that writes to them. Comparisons
(`tracking.py`) and runs on Flower both use it. Nothing is imported before it is asked for.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from fedcohort.checks import check_choice
from fedcohort.files import read_json_table, write_json
from fedcohort.lab import folder as run_folder

Scalars = dict[str, list[tuple[int, float]]]  # (round, value), by name
WriteScalars = Callable[[str, Scalars], None]  # the name of the run to write to, its scalars
NEEDS = {  # module, extra
    "tensorboard": ("tensorboardX", "tracking"),
    "mlflow": ("mlflow", "mlflow"),
    "wandb": ("wandb", "wandb"),
}
WANDB_RUNS = "wandb.json"  # the ids of W&B's runs, by name
EXPERIMENT = "fedcohort"  # its name in MLflow, and the project's in Weights & Biases
BATCH_SIZE = 1000  # the most metrics that MLflow takes at once


@dataclass(frozen=True)
class TrackedRuns:
    """What a library is told of the runs whose scalars it gets.

    Attributes:
        names: The names of the runs. An empty one stands for the only run of a folder.
        params: The settings that the runs share.
        folder: Their run folder.
        done: How many rounds were done when the runs began or went on.
    """

    names: Collection[str]
    params: Mapping[str, Any]
    folder: Path
    done: int

    def title(self, name: str) -> str:
        """Return the name of a run as a library shows it."""
        return name or self.folder.resolve().name


def check_installed(kind: str) -> None:
    """Refuse a library that is not installed, before anything is begun."""
    module, extra = NEEDS[check_choice("log", kind, NEEDS)]
    is_blocked = module in sys.modules and sys.modules[module] is None
    is_missing = module not in sys.modules and find_spec(module) is None
    if is_blocked or is_missing:
        raise ValueError(f"log {kind} needs {module}: pip install 'fedcohort[{extra}]'")


@contextmanager
def track_scalars(kind: str, runs: TrackedRuns) -> Iterator[WriteScalars]:
    """Open the runs of a library, and yield the function that writes to them.

    Args:
        kind: "tensorboard", "mlflow" or "wandb".
        runs: The runs.
    """
    with BACKENDS[check_choice("log", kind, BACKENDS)](runs) as write_scalars:
        yield write_scalars


@contextmanager
def _tensorboard(runs: TrackedRuns) -> Iterator[WriteScalars]:
    from tensorboardX import SummaryWriter

    writers = {}
    for name in runs.names:
        writers[name] = SummaryWriter(
            str(runs.folder / "tensorboard" / name.replace(" ", "-")),
            purge_step=runs.done + 1,
            # Two files that are made within one second must not share a name.
            filename_suffix=f".{runs.done:07d}",
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
def _mlflow(runs: TrackedRuns) -> Iterator[WriteScalars]:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    runs.folder.mkdir(parents=True, exist_ok=True)
    own_database = f"sqlite:///{runs.folder.resolve() / 'mlflow.db'}"
    client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or own_database)
    ids = _resume_or_create_runs(client, runs)

    def write_scalars(name: str, scalars: Scalars) -> None:
        metrics = []
        for tag, points in scalars.items():
            for step, value in points:
                metrics.append(Metric(tag, value, 0, step))
        for start in range(0, len(metrics), BATCH_SIZE):
            client.log_batch(ids[name], metrics=metrics[start : start + BATCH_SIZE])

    try:
        yield write_scalars
    except BaseException:
        for run in ids.values():
            client.set_terminated(run, "KILLED")
        raise
    for run in ids.values():
        client.set_terminated(run)


def _resume_or_create_runs(client: Any, runs: TrackedRuns) -> dict[str, str]:
    """Return the ids of MLflow's runs: the stored ones of a resumed run, or new ones."""
    from mlflow.entities import Param

    stored = run_folder.read_mlflow_runs(runs.folder) if runs.done else {}
    if set(stored) == set(runs.names):
        for run in stored.values():
            client.update_run(run, status="RUNNING")
        return stored

    existing = client.get_experiment_by_name(EXPERIMENT)
    experiment = existing.experiment_id if existing else client.create_experiment(EXPERIMENT)
    params = [Param(key, str(value)) for key, value in runs.params.items()]
    ids = {}
    for name in runs.names:
        ids[name] = client.create_run(experiment, run_name=runs.title(name)).info.run_id
        client.log_batch(ids[name], params=params)
    run_folder.write_mlflow_runs(runs.folder, ids)
    return ids


@contextmanager
def _wandb(runs: TrackedRuns) -> Iterator[WriteScalars]:
    """Write to Weights & Biases; `WANDB_MODE`, `WANDB_PROJECT` and the like hold as always."""
    import wandb

    runs.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        opened = {}
        ids = _wandb_ids(runs)
        for name in runs.names:
            run = wandb.init(
                id=ids[name],
                resume="allow",
                project=os.environ.get("WANDB_PROJECT") or EXPERIMENT,
                name=runs.title(name),
                group=runs.folder.resolve().name,
                dir=str(runs.folder),
                config=dict(runs.params),
                reinit="create_new",
                settings=wandb.Settings(silent=True),
            )
            # A round that is played again would be refused as a step of W&B's own.
            run.define_metric("round")
            run.define_metric("*", step_metric="round")
            opened[name] = stack.enter_context(run)

        def write_scalars(name: str, scalars: Scalars) -> None:
            rows: dict[int, dict[str, float]] = {}
            for tag, points in scalars.items():
                for step, value in points:
                    rows.setdefault(step, {"round": step})[tag] = value
            for step in sorted(rows):
                opened[name].log(rows[step])

        yield write_scalars


def _wandb_ids(runs: TrackedRuns) -> dict[str, str]:
    """Return the ids of W&B's runs: the stored ones of a resumed run, or new ones."""
    path = runs.folder / WANDB_RUNS
    stored = read_json_table(path, "the ids of W&B runs") if runs.done and path.exists() else {}
    if set(stored) == set(runs.names):
        return {name: str(run) for name, run in stored.items()}
    ids = {name: uuid4().hex[:12] for name in runs.names}
    write_json(path, ids)
    return ids


BACKENDS = {"tensorboard": _tensorboard, "mlflow": _mlflow, "wandb": _wandb}
