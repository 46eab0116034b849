"""Scalars of rounds on Flower, read back with the real libraries."""

import sys
from contextlib import contextmanager

import pytest
from fakes import federation
from helpers import cohort_strategy, initial

from fedcohort.flower import round_log
from fedcohort.flower.round_log import SCALARS, RoundLog

ROWS = [
    {
        "round": number,
        "success_ratio": number / 10,
        "cep": number * 2,
        "fairness": 0.5,
        "arrived": 2,
        "seconds": 1.5,
        "deadline": 20.0,
        "probabilities": {"a": 0.25, "b": 0.75},
    }
    for number in (1, 2, 3)
]
PARAMS = {"selector": "random", "rounds": 3}


def tensorboard(folder):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reading.EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    found = {}
    for tag in events.Tags()["scalars"]:
        found[tag] = {event.step: event.value for event in events.Scalars(tag)}
    return found


def mlflow(folder):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fedcohort").experiment_id
    (run,) = client.search_runs([experiment])
    assert (run.info.run_name, run.data.params["selector"]) == (folder.name, "random")
    found = {}
    for tag in run.data.metrics:
        history = client.get_metric_history(run.info.run_id, tag)
        found[tag] = {metric.step: metric.value for metric in history}
    return found


def wandb(folder):
    """Read what W&B keeps offline, with its own reader."""
    import json

    from wandb import teardown
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    teardown()  # its process writes beside ours; now all is on disk
    found = {}
    ids = set()
    for path in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        store = DataStore()
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "run":
                ids.add(record.run.run_id)
            values = {}
            for item in record.history.item:
                key = item.key or ".".join(item.nested_key)
                values[key] = json.loads(item.value_json)
            for tag in values.keys() - {"round"}:
                found.setdefault(tag, {})[values.get("round")] = values[tag]
    assert len(ids) == 1, "a resumed run goes on under the same id"
    return {tag: steps for tag, steps in found.items() if not tag.startswith("_")}


READ = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}


@pytest.fixture
def _offline(monkeypatch, tmp_path):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb-home"))


def write(folder, kind, rows, done):
    log = RoundLog([kind], folder, PARAMS, done)
    for row in rows:
        log.write_row(row)
        log.write_metrics("server", row["round"], {"accuracy": row["round"] / 4, "list": [1.0]})
    log.close()


@pytest.mark.slow
@pytest.mark.usefixtures("_offline")
@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("kind", READ)
def test_the_library_reads_back_the_rows_also_after_a_resume(tmp_path, kind):
    folder = tmp_path / "run"
    write(folder, kind, ROWS, done=0)
    again = {**ROWS[2], "cep": 99}
    write(folder, kind, [again], done=2)  # killed after round 3, gone on with from round 2
    found = READ[kind](folder)
    assert set(found) == {
        *(f"round/{name}" for name in SCALARS),
        "probability/a",
        "probability/b",
        "server/accuracy",
    }
    for name in SCALARS:
        wanted = {row["round"]: pytest.approx(row[name], rel=1e-6) for row in ROWS[:2]}
        assert found[f"round/{name}"] == {**wanted, 3: pytest.approx(again[name], rel=1e-6)}
    assert found["server/accuracy"] == {1: 0.25, 2: 0.5, 3: 0.75}


@pytest.mark.filterwarnings("ignore")
def test_a_run_writes_its_rounds_and_what_clients_report(clock, tmp_path):
    strategy = cohort_strategy(folder=tmp_path, log="tensorboard")
    strategy.start(federation(clock, 4), initial(), num_rounds=2)
    found = tensorboard(tmp_path)
    assert found["round/arrived"] == {1: 3.0, 2: 3.0}
    assert set(found["train/train_loss"]) == {1, 2}


@pytest.mark.usefixtures("_offline")
@pytest.mark.filterwarnings("ignore")
def test_a_client_with_an_odd_name_does_not_end_the_log(tmp_path, logged):
    odd = {**ROWS[0], "probabilities": {"../b@c": 0.25, "ok-1": 0.5, "": 0.75}}
    write(tmp_path, "mlflow", [odd, ROWS[1]], done=0)
    found = mlflow(tmp_path)
    assert found["probability/___b_c"] == {1: 0.25}
    assert found["probability/ok-1"] == {1: 0.5}
    assert found["round/cep"] == {1: 2.0, 2: 4.0}
    assert logged == []


@contextmanager
def broken(kind, runs):
    def write_scalars(name, scalars):
        if kind == "mlflow":
            raise ConnectionError("the server is down")
        written.append((kind, scalars))

    written.clear()
    yield write_scalars


written = []


def test_a_library_that_cannot_write_is_left_out_and_the_run_goes_on(
    clock, tmp_path, monkeypatch, logged
):
    monkeypatch.setattr(round_log, "track_scalars", broken)
    strategy = cohort_strategy(folder=tmp_path, log=["mlflow", "tensorboard"])
    strategy.start(federation(clock, 4), initial(), num_rounds=3)
    assert strategy.training.totals.arrived == 9
    warnings = [line for line in logged if "gets nothing from now on" in line]
    assert warnings == [
        "WARNING: mlflow gets nothing from now on, the run goes on: "
        "ConnectionError: the server is down"
    ]
    assert {kind for kind, _ in written} == {"tensorboard"}
    assert len(written) == 6  # a row and the clients' metrics in each of three rounds


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        ("tensorboard", "tensorboardX", "tracking"),
        ("mlflow", "mlflow", "mlflow"),
        ("wandb", "wandb", "wandb"),
    ],
)
def test_a_missing_library_is_refused_with_what_to_install(
    tmp_path, monkeypatch, kind, module, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"log {kind} needs {module}: pip install 'fedcohort\[{extra}\]'"
    with pytest.raises(ValueError, match=message):
        cohort_strategy(folder=tmp_path, log=kind)


def test_an_unknown_log_and_a_missing_folder_are_refused(tmp_path):
    with pytest.raises(ValueError, match="log must be one of tensorboard, mlflow, wandb"):
        cohort_strategy(folder=tmp_path, log="tensorbord")
    with pytest.raises(ValueError, match="folder must be given for resume and log, got None"):
        cohort_strategy(tensorboard=True)
