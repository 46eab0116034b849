"""Scalars of a comparison, read back with the real libraries."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "reports"))
from run_folders import SMALL, write_comparison

from fedcohort import cli
from fedcohort.lab import folder as rundir
from fedcohort.lab.runs import run_keys
from fedcohort.lab.tracking import track, tracked_runs
from fedcohort.reports import figures

GROUP = "primary-label paper random"


def told(kind, folder, kept, first, until, done):
    """Tell a tracker of some rounds as a run does that had so many done when it began."""
    with track(kind, SMALL, folder, done) as saved:
        saved(first, {name: values[first:until] for name, values in kept.items()})


def wanted(kept):
    """Return what must be read back of one scheme, by round."""
    rows = [
        row
        for row, p in enumerate(run_keys(SMALL))
        if (p.partition, p.selector) == ("primary-label", "random")
    ]
    used = np.cumsum(kept["valid"][:, rows].sum(axis=-1), axis=0)
    return {
        "accuracy": kept["accuracy"][:, rows].mean(axis=1),
        "cep": used.mean(axis=1),
        "success_ratio": used.mean(axis=1) / (3 * np.arange(1, 13)),
        "wasted_seconds": np.cumsum(kept["wasted_seconds"][:, rows], axis=0).mean(axis=1),
    }


def tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard" / GROUP.replace(" ", "-"))).Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


def mlflow(folder):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fedcohort").experiment_id
    runs = [run for run in client.search_runs([experiment]) if run.info.run_name == GROUP]
    assert [(run.info.status, run.data.params["clients"]) for run in runs] == [("FINISHED", "8")]
    metrics = runs[0].data.metrics
    return {
        tag: {m.step: m.value for m in client.get_metric_history(runs[0].info.run_id, tag)}
        for tag in metrics
    }


def wandb(folder):
    """Read what W&B keeps offline, with its own reader."""
    from wandb import teardown
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    teardown()  # its process writes beside ours; now all is on disk

    own = json.loads((folder / "wandb.json").read_text())[GROUP]
    found = {}
    # W&B numbers the folders of runs that it opens within one second: name, name-1, ...
    for path in sorted(folder.glob(f"wandb/offline-run-*-{own}*/run-*.wandb")):
        store = DataStore()
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            items = Record.FromString(data).history.item
            values = {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}
            for tag in values.keys() - {"round"}:
                found.setdefault(tag, {})[values.get("round")] = values[tag]
    return found


READ = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}


@pytest.fixture(params=READ)
def kind(request, monkeypatch):
    module = {"tensorboard": "tensorboardX"}.get(request.param, request.param)
    if find_spec(module) is None and not os.environ.get("CI"):
        pytest.skip(
            f"NOT INSTALLED: {module}, so logging to it is not tested: "
            "pip install -e '.[tracking,mlflow,wandb,dev]'"
        )
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    return request.param


@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_what_the_library_reads_back_is_what_the_records_say_also_after_a_resume(kind, tmp_path):
    kept = write_comparison(tmp_path)
    told(kind, tmp_path, kept, 0, 8, done=0)
    told(kind, tmp_path, kept, 6, 12, done=6)  # killed after round 8, gone on with from round 6
    found = READ[kind](tmp_path)
    for name, values in wanted(kept).items():
        assert sorted(found[name]) == list(range(1, 13))
        np.testing.assert_allclose([found[name][step] for step in range(1, 13)], values, rtol=1e-6)


def test_there_is_a_run_for_every_scheme_and_kind_of_run():
    found = tracked_runs(SMALL)
    assert len(found) == 4
    assert sorted(row for rows in found.values() for row in rows) == list(
        range(len(run_keys(SMALL)))
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("--log", "tensorbord"),
            "log must be one of tensorboard, mlflow, wandb, got 'tensorbord'; did you mean",
        ),
        (("--log", "mlflow"), "log mlflow needs mlflow: pip install 'fedcohort[mlflow]'"),
    ],
)
def test_a_log_that_cannot_be_written_is_refused_before_anything_is_begun(
    tmp_path, monkeypatch, capsys, args, message
):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setattr(
        sys,
        "argv",
        ["fedcohort", "compare", "--rounds", "2", "--out", str(tmp_path / "run"), *args],
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_compare_logs_what_it_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)
    args = (
        "--clients 8 --cohort 3 --seeds 1 --selectors random --partitions iid "
        "--aggregations paper --rounds 3"
    )
    more = [
        "--samples-per-client",
        "20",
        "--mode",
        "one-by-one",
        "--out",
        str(tmp_path),
        "--log",
        "tensorboard",
    ]
    monkeypatch.setattr(sys, "argv", ["fedcohort", "compare", *args.split(), *more])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert [path.name for path in (tmp_path / "tensorboard").iterdir()] == ["iid-paper-random"]
    assert len(rundir.load_records(tmp_path)["accuracy"]) == 3
    assert "Report: " in capsys.readouterr().out


def failing_at(call, monkeypatch):
    """Let TensorBoard's writer fail from its n-th scalar on."""
    import tensorboardX

    write = tensorboardX.SummaryWriter.add_scalar
    calls = []

    def add_scalar(*args, **options):
        calls.append(args)
        if len(calls) >= call:
            raise OSError("no space left on device")
        return write(*args, **options)

    monkeypatch.setattr(tensorboardX.SummaryWriter, "add_scalar", add_scalar)
    return calls


def test_a_library_that_fails_is_warned_of_once_and_ends_nothing(tmp_path, monkeypatch, caplog):
    kept = write_comparison(tmp_path)
    calls = failing_at(3, monkeypatch)
    with track("tensorboard", SMALL, tmp_path / "logs", 0) as saved:
        saved(0, {name: values[:1] for name, values in kept.items()})
        saved(1, {name: values[1:2] for name, values in kept.items()})
    assert len(calls) == 3  # after the failure nothing is written any more
    assert [record.getMessage() for record in caplog.records] == [
        "log tensorboard fails, and the run goes on without it: OSError: no space left on device"
    ]


def test_a_library_that_fails_when_it_is_closed_ends_nothing(tmp_path, monkeypatch, caplog):
    import tensorboardX

    def close(self):
        raise OSError("the server is gone")

    monkeypatch.setattr(tensorboardX.SummaryWriter, "close", close)
    with track("tensorboard", SMALL, tmp_path, 0):
        pass
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_an_error_of_the_training_is_not_hidden_by_the_library(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        track("tensorboard", SMALL, tmp_path, 0),
    ):
        raise ZeroDivisionError
