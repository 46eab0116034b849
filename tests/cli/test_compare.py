import csv
import json
import re
import sys

import numpy as np
import pytest

from fedcohort import cli
from fedcohort.data import Dataset, load
from fedcohort.files import load_arrays, read_toml
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.recorder import read_allocations
from fedcohort.lab.trial import Trial, deal_samples
from fedcohort.reports import figures
from fedcohort.reports.charts.clients import labels_per_client
from fedcohort.reports.charts.curves import accuracy_over_rounds
from killed_command import kill_after_the_next_checkpoint

SMALL = (
    "--clients",
    "12",
    "--cohort",
    "4",
    "--seeds",
    "1",
    "--selectors",
    "e3cs-0.5,random,pow-d,rpow-d",
    "--partitions",
    "iid",
    "--aggregations",
    "paper",
    "--samples-per-client",
    "20",
    "--epochs",
    "1,2",
    "--checkpoint-every",
    "2",
    "--mode",
    "one-by-one",
)
TINY = (*SMALL, "--rounds", "6")
LONG = (
    *SMALL,
    "--rounds",
    "30",
    "--checkpoint-every",
    "3",
    "--partitions",
    "primary-label",
    "--aggregations",
    "normalised",
    "--server-momentum",
    "0.5",
    "--jitter",
    "0.2",
)
RECORDED = {
    "clients",
    "arrived",
    "valid",
    "accuracy",
    "loss",
    "seconds",
    "wasted_seconds",
    "wasted_bytes",
    "class_accuracy",
    "label_accuracy",
}


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Spare the time that figures take."""
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)


@pytest.fixture
def call(fedcohort):
    """Return a function that runs `compare`: exit code, output and errors."""

    def run(*args):
        return fedcohort("compare", *args)

    return run


def is_one_line_of_error(err):
    return err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n")


def remembered(folder):
    """Return all that a run leaves behind: records and the last checkpoint."""
    state = rundir.load_checkpoint(folder)
    seen = {name: vars(rows) for name, rows in read_allocations(folder).items()}
    return {
        "records": rundir.load_records(folder, state["round"]),
        "checkpoint": state,
        "allocations": seen,
    }


def differences(one, other, name=""):
    """Return the names of all parts that are not exactly equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = dict.fromkeys([*one, *other])
        return [
            found
            for key in keys
            for found in differences(one.get(key), other.get(key), f"{name}/{key}")
        ]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        same = (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    else:
        same = type(one) is type(other) and one == other
    return [] if same else [name]


def contents(folder):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_comparison_leaves_records_a_checkpoint_settings_environment_and_a_summary(
    call, tmp_path
):
    code, out, err = call(*TINY, "--out", "run")
    assert (code, err) == (0, "")
    folder = tmp_path / "run"
    assert {path.name for path in folder.iterdir()} == {
        "records",
        "checkpoint.safetensors",
        "checkpoint.previous.safetensors",
        "settings.toml",
        "environment.json",
        "data.sha256",
        "summary.csv",
        "owners.npz",
        "classes.npz",
        "allocations",
        "report.html",
    }
    assert {path.name for path in (folder / "records").iterdir()} == {
        "0000000.npz",
        "0000002.npz",
        "0000004.npz",
    }
    records = rundir.load_records(folder, 6)
    assert set(records) == RECORDED
    assert records["clients"].shape == records["valid"].shape == (6, 4, 4)
    assert ((records["accuracy"] >= 0) & (records["accuracy"] <= 1)).all()
    assert all(f" {name} " in out for name in ("e3cs-0.5", "random", "pow-d", "rpow-d"))
    assert out.splitlines()[-1] == "Report: run/report.html"


def test_the_summary_says_what_the_records_say(call, tmp_path):
    args = (
        *TINY,
        "--rounds",
        "25",
        "--seeds",
        "2",
        "--selectors",
        "random",
        "--aggregations",
        "normalised",
    )
    code, out, _ = call(*args, "--targets", "0.4,1.0", "--out", "run")
    assert code == 0
    records = rundir.load_records(tmp_path / "run", 25)
    with (tmp_path / "run" / "summary.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    accuracy, elapsed = records["accuracy"], np.cumsum(records["seconds"], axis=0)
    first = [next(t for t in range(25) if accuracy[t, run] >= 0.4) for run in range(2)]
    assert float(row["rounds to 0.4"]) == np.mean([t + 1 for t in first])
    assert float(row["time to 0.4"]) == pytest.approx(
        np.mean([elapsed[t, run] for run, t in enumerate(first)])
    )
    assert row["rounds to 1"] == row["time to 1"] == "nan"
    assert float(row["final"]) == pytest.approx(accuracy[-1].mean())
    assert float(row["sd"]) == pytest.approx(abs(accuracy[-1, 0] - accuracy[-1, 1]) / np.sqrt(2))
    by_class = records["class_accuracy"][-1].astype(float).mean(axis=0)
    assert float(row["worst class"]) == pytest.approx(by_class.min())
    assert float(row["gap"]) == pytest.approx(100 * (by_class.max() - by_class.min()))
    # A seed may have no test sample of a label.
    by_label = np.nanmean(records["label_accuracy"][-1].astype(float), axis=0)
    assert float(row["worst label"]) == pytest.approx(by_label.min())
    said = " ".join(out.split())
    assert f"at {by_class.min():.3f} ± " in said
    assert "random leaves its worst class, clients that answer " in said
    assert float(row["success"]) == pytest.approx(records["valid"].sum() / (25 * 2 * 4))
    assert float(row["wasted s"]) == pytest.approx(records["wasted_seconds"].sum() / 2)
    size = 4 * (64 * 64 + 64 + 64 * 10 + 10)  # bytes of the mlp on 8 x 8 images
    assert float(row["wasted MB"]) == pytest.approx((~records["arrived"]).sum() / 2 * size / 1e6)


def test_the_probabilities_of_the_first_run_and_who_owns_which_labels_are_kept(call, tmp_path):
    assert call(*TINY, "--seeds", "2", "--out", "run")[0] == 0
    seen = read_allocations(tmp_path / "run")
    assert list(seen) == ["e3cs-0.5"]
    assert seen["e3cs-0.5"].rounds.tolist() == list(range(6))
    np.testing.assert_allclose(seen["e3cs-0.5"].inclusion.sum(axis=1), 4, atol=0.02)
    np.testing.assert_allclose(seen["e3cs-0.5"].inclusion[0], 4 / 12, atol=1e-3)
    assert (seen["e3cs-0.5"].inclusion[5] > 4 / 12).any()
    labels = load_arrays(tmp_path / "run" / "owners.npz")["iid"]
    assert labels.shape == (12, 10)
    assert (labels.sum(axis=1) == 18).all()  # a tenth of 20 is reserved for testing


def test_the_table_is_printed_as_json_alone(call, tmp_path):
    code, out, err = call(*TINY, "--selectors", "random", "--out", "run", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["command"], said["settings"]["clients"], said["rows"][0]["selector"]) == (
        "compare",
        12,
        "random",
    )
    assert said["rows"][0]["final"] == rundir.load_records(tmp_path / "run")["accuracy"][-1, 0]


def test_who_arrives_is_decided_by_seconds_and_deadline(call, tmp_path):
    assert (
        call(
            *TINY,
            "--rates",
            "1",
            "--epochs",
            "1,3",
            "--seconds-per-epoch",
            "2",
            "--deadline",
            "5",
            "--out",
            "run",
        )[0]
        == 0
    )
    of = ComparisonConfig.from_dict(rundir.read_settings(tmp_path / "run"))
    epochs = np.stack(
        [run.epochs for run in Trial(of, load("digits"), tmp_path / "run").engine.runs]
    )
    records = rundir.load_records(tmp_path / "run", 6)
    asked = np.take_along_axis(epochs[None], records["clients"].astype(int), axis=-1)
    assert np.array_equal(records["arrived"], asked == 1)
    assert np.array_equal(records["seconds"], np.where((asked == 3).any(axis=-1), 5.0, 2.0))
    assert np.array_equal(records["wasted_seconds"], 5.0 * (asked == 3).sum(axis=-1))
    assert (asked == 1).any()
    assert (asked == 3).any()


def test_the_same_settings_give_the_same_run_and_another_seed_another(call, tmp_path):
    for out, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert call(*TINY, "--first-seed", seed, "--out", out)[0] == 0
    a, b, c = (remembered(tmp_path / name) for name in "abc")
    assert differences(a, b) == []
    assert {"/records/clients", "/records/accuracy", "/checkpoint/engine/models"} <= set(
        differences(a, c)
    )


@pytest.mark.parametrize("mode", ["one-by-one", "together"])
def test_results_do_not_depend_on_who_else_is_compared_but_for_rounding(call, tmp_path, mode):
    mine = (*TINY, "--seeds", "2", "--mode", mode)
    assert call(*mine, "--selectors", "e3cs-0.5", "--out", "alone")[0] == 0
    assert call(*mine, "--selectors", "random,e3cs-0.5", "--out", "beside")[0] == 0
    alone, beside = (remembered(tmp_path / name) for name in ("alone", "beside"))
    rows = [2, 3]  # after the two of random
    for name in RECORDED - {"accuracy", "class_accuracy", "label_accuracy", "loss"}:
        assert np.array_equal(alone["records"][name], beside["records"][name][:, rows])
    np.testing.assert_allclose(
        alone["records"]["loss"], beside["records"]["loss"][:, rows], rtol=1e-4
    )
    np.testing.assert_allclose(
        alone["checkpoint"]["engine"]["models"],
        beside["checkpoint"]["engine"]["models"][rows],
        rtol=0,
        atol=1e-5,
    )
    assert (
        differences(alone["checkpoint"]["selectors"]["0"], beside["checkpoint"]["selectors"]["1"])
        == []
    )


def test_evaluating_less_often_leaves_gaps_and_nothing_else_changes(call, tmp_path):
    assert call(*TINY, "--out", "often")[0] == 0
    assert call(*TINY, "--evaluate-every", "4", "--out", "seldom")[0] == 0
    often, seldom = (remembered(tmp_path / name) for name in ("often", "seldom"))
    seen = [3, 5]  # every fourth, and the last
    assert np.isnan(seldom["records"]["accuracy"]).all(axis=1).tolist() == [
        True,
        True,
        True,
        False,
        True,
        False,
    ]
    assert np.array_equal(seldom["records"]["accuracy"][seen], often["records"]["accuracy"][seen])
    assert differences(often["checkpoint"], seldom["checkpoint"]) == []


def test_a_finished_comparison_is_shown_and_not_computed_again(call, tmp_path):
    _, first, _ = call(*TINY, "--out", "run")
    before = contents(tmp_path / "run")
    for more in ((), ("--resume",)):
        code, again, err = call(*TINY, "--out", "run", *more)
        assert (code, err) == (0, "")
        assert again == first
    after = contents(tmp_path / "run")
    kept = [path for path in before if path.name not in ("summary.csv", "report.html")]
    assert all(after[path] == before[path] for path in kept)
    assert after.keys() == before.keys()


def test_other_settings_are_refused_and_leave_the_folder_as_it_was(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    before = contents(tmp_path / "run")
    for more in (("--learning-rate", "0.1"), ("--rounds", "8", "--resume"), ("--mode", "together")):
        code, out, err = call(*TINY, "--out", "run", *more)
        assert (code, out) == (2, "")
        assert is_one_line_of_error(err)
        told = (
            "rounds must be 6 as in run to resume it, got 8; leave all settings out"
            if "--resume" in more
            else "other settings, got run with .*, not .*--overwrite"
        )
        assert re.search(told, err)
    assert contents(tmp_path / "run") == before


def test_a_folder_in_use_by_another_process_is_refused_and_left_as_it_was(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    before = contents(tmp_path / "run")
    with rundir.locked(tmp_path / "run"):
        code, out, err = call(*TINY, "--out", "run", "--overwrite")
        assert (code, out) == (2, "")
        assert "out must not be in use by another process, got run" in err
    assert contents(tmp_path / "run") == before
    assert call(*TINY, "--out", "run", "--overwrite")[0] == 0


def test_overwrite_discards_what_was_there(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    other = (*TINY, "--rounds", "3", "--checkpoint-every", "1", "--first-seed", "4")
    assert call(*other, "--out", "run", "--overwrite")[0] == 0
    assert call(*other, "--out", "fresh")[0] == 0
    assert differences(remembered(tmp_path / "run"), remembered(tmp_path / "fresh")) == []
    assert sorted(path.name for path in (tmp_path / "run" / "records").iterdir()) == [
        "0000000.npz",
        "0000001.npz",
        "0000002.npz",
    ]


def test_overwrite_of_a_finished_run_computes_it_again(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    first = (tmp_path / "run" / "checkpoint.safetensors").stat().st_mtime_ns
    assert call(*TINY, "--out", "run", "--overwrite")[0] == 0
    assert (tmp_path / "run" / "checkpoint.safetensors").stat().st_mtime_ns > first


def test_overwrite_does_not_go_on_from_a_checkpoint_whose_settings_are_gone(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    (tmp_path / "run" / "settings.toml").unlink()
    other = (*TINY, "--learning-rate", "0.2")
    assert call(*other, "--out", "run", "--overwrite")[0] == 0
    assert call(*other, "--out", "fresh")[0] == 0
    assert differences(remembered(tmp_path / "run"), remembered(tmp_path / "fresh")) == []


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(call, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("mine")
    for out in ("mine", "file", "file/run"):
        for more in ((), ("--resume",)):
            code, _, err = call(*TINY, "--out", out, *more)
            assert code == 2
            assert is_one_line_of_error(err)
            assert out.split("/")[0] in err
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "settings.toml", "records/0000002.npz"])
def test_a_damaged_file_of_a_run_is_refused_by_name_and_not_overwritten(call, tmp_path, name):
    assert call(*TINY, "--out", "run")[0] == 0
    path = tmp_path / "run" / name
    path.write_bytes(path.read_bytes()[:30])
    before = contents(tmp_path / "run")
    for more in ((), ("--resume",)):
        code, _, err = call(*TINY, "--out", "run", *more)
        assert code == 2
        assert is_one_line_of_error(err)
        assert path.name in err
    assert contents(tmp_path / "run") == before


def test_a_checkpoint_of_something_else_is_refused_by_name(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    rundir.save_checkpoint(tmp_path / "run", {"hello": 1})
    code, _, err = call(*TINY, "--out", "run", "--resume")
    assert code == 2
    assert is_one_line_of_error(err)
    assert "checkpoint" in err


class Killed(Exception):
    """Stands for the end of the process in the middle of its work."""


@pytest.mark.parametrize(("moment", "times"), [("save_records", 2), ("save_checkpoint", 3)])
def test_a_run_that_ends_while_it_saves_goes_on_exactly(call, tmp_path, monkeypatch, moment, times):
    assert call(*TINY, "--out", "whole")[0] == 0
    save, calls = getattr(rundir, moment), []

    def dying(*args):
        calls.append(args)
        if len(calls) == times:
            raise Killed
        save(*args)

    monkeypatch.setattr(sys, "argv", ["fedcohort", "compare", *TINY, "--out", "run"])
    monkeypatch.setattr(rundir, moment, dying)
    with pytest.raises(Killed):
        cli.main()
    monkeypatch.setattr(rundir, moment, save)
    assert rundir.load_checkpoint(tmp_path / "run")["round"] == 2

    code, _, err = call(*TINY, "--out", "run")
    assert code == 2
    assert is_one_line_of_error(err)
    assert re.search(
        "out must not hold an unfinished run, got run with 2 of 6 rounds; add --resume", err
    )

    assert call("--out", "run", "--resume")[0] == 0  # with the settings that it has
    assert differences(remembered(tmp_path / "run"), remembered(tmp_path / "whole")) == []


def test_an_interrupted_run_says_how_to_go_on_and_goes_on_exactly(call, tmp_path, monkeypatch):
    assert call(*TINY, "--out", "whole")[0] == 0
    save = rundir.save_records

    def interrupted(folder, first_round, records):
        if first_round == 2:
            raise KeyboardInterrupt
        save(folder, first_round, records)

    monkeypatch.setattr(rundir, "save_records", interrupted)
    instead = "error: interrupted; the same command with --resume instead of --overwrite goes on\n"
    assert call(*TINY, "--out", "other", "--overwrite") == (130, "", instead)
    code, out, err = call(*TINY, "--out", "run")
    assert (code, out) == (130, "")
    assert err == "error: interrupted; the same command with --resume goes on\n"
    monkeypatch.setattr(rundir, "save_records", save)
    assert call(*TINY, "--out", "run", "--resume")[0] == 0
    assert differences(remembered(tmp_path / "run"), remembered(tmp_path / "whole")) == []


def test_a_run_that_ended_before_its_first_checkpoint_starts_again_with_resume(call, tmp_path):
    assert call(*TINY, "--out", "whole")[0] == 0
    rundir.write_settings(
        tmp_path / "run",
        ComparisonConfig.from_dict(rundir.read_settings(tmp_path / "whole")).as_dict(),
    )
    code, _, err = call(*TINY, "--out", "run")
    assert code == 2
    assert "0 of 6 rounds; add --resume" in err
    assert call(*TINY, "--out", "run", "--resume")[0] == 0
    assert differences(remembered(tmp_path / "run"), remembered(tmp_path / "whole")) == []


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "mode"), [(1, "auto"), (2, "together")])
def test_a_killed_run_that_is_resumed_equals_the_uninterrupted_run_exactly(
    call, tmp_path, kills, mode
):
    args, done = (*LONG, "--mode", mode, "--out", "run"), 0
    for kill in range(kills):
        resume = ["--resume"] if kill else []
        state = kill_after_the_next_checkpoint(["compare", *args, *resume], tmp_path / "run")
        assert done < state["round"] < 30
        done = state["round"]
        code, _, err = call(*args)
        assert code == 2
        assert f"{done} of 30 rounds; add --resume" in err
    code, _, err = call(*args, "--resume")
    assert (code, err) == (0, "")
    assert call(*LONG, "--mode", state["mode"], "--out", "whole")[0] == 0
    resumed, whole = (remembered(tmp_path / name) for name in ("run", "whole"))
    assert whole["checkpoint"]["round"] == len(whole["records"]["clients"]) == 30
    assert (whole["checkpoint"]["engine"]["velocity"] != 0).any()
    assert differences(resumed, whole) == []
    assert (tmp_path / "run" / "summary.csv").read_bytes() == (
        tmp_path / "whole" / "summary.csv"
    ).read_bytes()


@pytest.mark.slow
def test_rules_with_memory_go_on_exactly_after_a_kill(call, tmp_path):
    rules = ("--aggregations", "fedvarp,mifa,fedau,inverse-estimated", "--selectors", "age")
    kept = [*LONG, *rules, "--mode", "together", "--server-momentum", "0"]
    kept += ["--server-optimizer", "adam"]
    state = kill_after_the_next_checkpoint(["compare", *kept, "--out", "run"], tmp_path / "run")
    assert state["memory"]["rounds"]
    assert call(*kept, "--out", "run", "--resume")[0] == 0
    assert call(*kept, "--out", "whole")[0] == 0
    resumed, whole = (remembered(tmp_path / name) for name in ("run", "whole"))
    assert differences(resumed, whole) == []


def test_flags_go_before_the_file_and_the_file_before_the_defaults(call, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'rounds = 2\nclients = 8\nselectors = ["random"]\nseeds = 1\nmode = "one-by-one"\n'
    )
    assert (
        call("--config", "mine.toml", "--clients", "9", "--partitions", "iid", "--out", "run")[0]
        == 0
    )
    found = ComparisonConfig.from_dict(rundir.read_settings(tmp_path / "run"))
    assert found == ComparisonConfig(
        rounds=2, clients=9, selectors=("random",), seeds=1, partitions=("iid",), mode="one-by-one"
    )


def test_so_many_clients_that_none_has_a_test_sample_are_named():
    message = "test_fraction .* none of the 1000 clients owns more than 2 of the samples, got 0.1"
    with pytest.raises(ValueError, match=message):
        deal_samples(ComparisonConfig(clients=1000), load("digits"), "iid", 0)


def test_a_settings_file_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("rounds = 2\n", encoding="utf-8-sig")
    assert read_toml(path) == {"rounds": 2}


def test_the_settings_that_a_run_wrote_can_be_given_as_its_file(call, tmp_path):
    assert call(*TINY, "--eta", "auto", "--out", "one")[0] == 0
    assert call("--config", "one/settings.toml", "--out", "two")[0] == 0
    assert differences(remembered(tmp_path / "one"), remembered(tmp_path / "two")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cohorts = 3", "setting .*, got 'cohorts'; did you mean 'cohort'"),
        ("rounds = ", r"mine\.toml must be a settings file in TOML"),
        ('rounds = "many"', "rounds .*, got 'many'"),
        ("dataset = 5", "dataset .*5"),
        ('max_norm = "big"', "max_norm .*big"),
        ('compiled = "no"', "compiled .*no"),
        ("[compare]\nrounds = 3", "setting .*, got 'compare'"),
    ],
)
def test_a_mistake_in_the_file_ends_with_code_2_and_one_line(call, tmp_path, text, message):
    (tmp_path / "mine.toml").write_text(text)
    code, out, err = call(*SMALL, "--config", "mine.toml", "--out", "run")
    assert (code, out) == (2, "")
    assert is_one_line_of_error(err)
    assert re.search(message, err)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flags", "refill"), [((), True), (("--refill",), True), (("--no-refill",), False)]
)
def test_a_switch_goes_before_the_file(call, tmp_path, flags, refill):
    (tmp_path / "mine.toml").write_text("refill = true\n")
    assert call(*TINY, "--rounds", 1, "--config", "mine.toml", "--out", "out", *flags)[0] == 0
    assert rundir.read_settings(tmp_path / "out")["refill"] is refill


WRONG = {
    "no rounds": (("--rounds", "0"), "rounds .* at least 1, got 0"),
    "rounds that are a word": (("--rounds", "many"), "rounds .*, got 'many'"),
    "more asked than there are": (("--cohort", "99"), "cohort .* between 1 and 12, got 99"),
    "unknown model": (("--model", "foo"), "model .*small-cnn.*, got 'foo'"),
    "unknown data set": (("--dataset", "cifar"), "dataset .*, got 'cifar'; did you mean 'cifar10'"),
    "unknown scheme": (
        ("--selectors", "randon"),
        "selector .*, got 'randon'; did you mean 'random'",
    ),
    "a scheme twice": (("--selectors", "random,random"), "selectors .* each once"),
    "two targets of one name": (("--targets", "0.6,0.60000001"), "targets .* each once, got "),
    "no schemes": (("--selectors", ","), "selectors .* at least one"),
    "no epochs": (("--epochs", "0"), "epochs .* at least 1, got 0"),
    "negative mu": (("--mus", "-1"), "mus .* between 0.0 and .*, got -1"),
    "no time": (("--deadline", "0"), "deadline .* above 0, got 0"),
    "unknown mode": (("--mode", "fast"), "mode .*, got 'fast'"),
    "bound that is a word": (("--max-norm", "big"), "max.norm .*big"),
    "negative bound": (("--max-norm", "-1"), "max.norm .*-1"),
    "a switch with a value": (("--compiled", "maybe"), "maybe"),
    "no slots": (("--slots", "0"), "slots .* at least 1, got 0"),
    "losses before every round": (("--losses-every", "-1"), "losses.every .* at least 0, got -1"),
    "unknown option": (("--clans", "3"), "--clans"),
    "partition of the paper's name": (("--partitions", "non-iid"), "did you mean 'primary-label'"),
    "rule of another program": (("--aggregations", "FedAvg"), "did you mean 'normalised'"),
    "a gap between rates": (("--rates", "0.5,,0.9"), "rates .* without gaps, got '0.5,,0.9'"),
    "rates that a world does not use": (
        ("--world", "devices", "--rates", "0.5"),
        "rates must not be given for the world 'devices', .*, got '0.5'",
    ),
    "compiled on a CPU": (("--compiled",), "compiled must not be given on a CPU"),
    "settings that are not there": (
        ("--config", "no.toml"),
        "config must be a file, got no.toml, which does not exist",
    ),
    "device of another name": (
        ("--device", "gpu"),
        "device must be cpu, cuda, cuda:N or auto, got 'gpu'$",
    ),
}
LATE = {
    "data set that is not there": (
        ("--dataset", "missing.npz"),
        "dataset must be a file, got missing.npz, which does not exist",
    ),
    "more clients than samples": (
        ("--clients", "5000"),
        "clients must be at most 1797, the samples in digits, got 5000",
    ),
    "a single sample of each client": (
        ("--samples-per-client", "1"),
        "samples_per_client must leave a test sample at test_fraction 0.1, got 1",
    ),
    "natural partition without a column": (("--partitions", "by-client"), "by-client.* column"),
    "no such device": (("--device", "quantum"), "device .*, got 'quantum'"),
    "more candidates than clients": (
        ("--candidates", "99"),
        "candidates .* between 4 and 12, got 99",
    ),
    "more samples than there are": (
        ("--samples-per-client", "5000"),
        "samples_per_client .* at most 1797",
    ),
    "nothing to test on": (("--test-fraction", "0"), "test_fraction"),
    "model that does not fit": (("--model", "cifar-cnn"), "model .*8"),
}


@pytest.mark.parametrize("mistake", WRONG | LATE)
def test_a_mistake_ends_with_code_2_and_one_line_and_does_not_block_the_corrected_call(
    call, tmp_path, mistake
):
    args, message = (WRONG | LATE)[mistake]
    code, out, err = call(*TINY, "--out", "run", *args)
    assert code == 2
    assert is_one_line_of_error(err), err
    assert re.search(message, err)
    assert out == ""
    assert call(*TINY, "--rounds", "1", "--selectors", "random", "--out", "run")[0] == 0


@pytest.mark.skipif(
    "__import__('torch').cuda.is_available()",
    reason="asks for a GPU where there is none, and this machine has one",
)
def test_a_gpu_that_is_not_there_is_refused_and_does_not_block_the_corrected_call(call):
    code, _, err = call(*TINY, "--out", "run", "--device", "cuda")
    assert code == 2
    assert is_one_line_of_error(err)
    assert re.search("device .*'cuda'", err)
    assert call(*TINY, "--out", "run")[0] == 0


def test_official_tests_are_refused_where_there_is_no_test_set_and_do_not_block_the_corrected_call(
    call,
):
    code, _, errors = call(*TINY, "--official-every", 2, "--out", "run")
    assert (code, errors) == (
        2,
        "error: official_every must be 0 for digits, which has no test set of its own, got 2\n",
    )
    assert call(*TINY, "--out", "run")[0] == 0


def test_a_mistake_in_overwriting_does_not_cost_the_run_that_was_there(call, tmp_path):
    assert call(*TINY, "--out", "run")[0] == 0
    before = contents(tmp_path / "run")
    assert call(*TINY, "--dataset", "missing.npz", "--out", "run", "--overwrite")[0] == 2
    assert contents(tmp_path / "run") == before


def own_data(path, owners=9):
    rng = np.random.default_rng(0)
    y = np.arange(180) % 3
    x = (y[:, None] + 0.3 * rng.standard_normal((180, 4))).astype(np.float32)
    clients = np.array(
        [f"user {who}" for who in np.sort(rng.permutation(np.arange(180) % owners) ** 2 % owners)]
    )
    np.savez(path, x=x, y=y, clients=clients)
    return clients


def test_own_data_with_their_natural_owners_can_be_compared(call, tmp_path):
    clients = own_data(tmp_path / "mine.npz")
    people = np.unique(clients)
    args = (
        "--dataset",
        "mine.npz",
        "--clients",
        len(people),
        "--cohort",
        2,
        "--rounds",
        30,
        "--seeds",
        1,
        "--partitions",
        "by-client,iid",
        "--rates",
        "0.8,1",
        "--selectors",
        "pow-d,rpow-d",
        "--mode",
        "one-by-one",
        "--out",
        "run",
    )
    code, out, err = call(*args)
    assert (code, err) == (0, "")
    assert "by-client" in out
    records = rundir.load_records(tmp_path / "run", 30)
    assert (records["accuracy"][-1] > 0.7).all()  # three classes, far apart: guessing gives a third
    of = ComparisonConfig.from_dict(rundir.read_settings(tmp_path / "run"))
    owners = Trial(of, load("mine.npz"), tmp_path / "run").owners["by-client", 0]
    for person, train, test in zip(people, owners.train, owners.test, strict=True):
        assert sorted([*train, *test]) == np.flatnonzero(clients == person).tolist()


def test_a_run_does_not_go_on_with_data_that_have_changed(call, tmp_path):
    own_data(tmp_path / "mine.npz")
    args = (
        *TINY[:-2],
        "--dataset",
        "mine.npz",
        "--model",
        "mlp",
        "--samples-per-client",
        "none",
        "--out",
        "run",
    )
    assert call(*args, "--rounds", "2")[0] == 0
    data = dict(np.load("mine.npz"))
    np.savez(tmp_path / "mine.npz", **data | {"x": data["x"] + 1})
    code, _, err = call(*args, "--rounds", "2", "--resume")
    assert code == 2
    assert "dataset must be what the run in run was begun with, got other samples" in err
    assert call(*args, "--rounds", "2", "--overwrite")[0] == 0


def test_a_model_for_images_is_refused_for_features_in_one_line(call, tmp_path):
    own_data(tmp_path / "mine.npz")
    code, _, err = call(
        *TINY[:-2],
        "--dataset",
        "mine.npz",
        "--model",
        "small-cnn",
        "--samples-per-client",
        "none",
        "--out",
        "run",
    )
    assert code == 2
    assert is_one_line_of_error(err)
    assert "model" in err


def test_a_data_set_with_a_name_in_any_letters_can_be_resumed(call, tmp_path):
    own_data(tmp_path / "données 😀.npz")
    args = (*TINY, "--samples-per-client", "none", "--dataset", "données 😀.npz", "--out", "run")
    for _ in range(2):
        code, _, err = call(*args)
        assert (code, err) == (0, "")


def test_updates_that_blow_up_are_counted_as_failures_and_nothing_is_lost(call, tmp_path):
    code, _, err = call(
        *TINY, "--rates", "1", "--learning-rate", "1e30", "--epochs", "2", "--out", "run"
    )
    assert (code, err) == (0, "")
    records = rundir.load_records(tmp_path / "run", 6)
    assert records["arrived"].all()
    assert not records["valid"].any()
    assert (records["accuracy"] == records["accuracy"][0]).all()
    size = 4 * (64 * 64 + 64 + 64 * 10 + 10)
    assert (records["wasted_bytes"] == 2 * 4 * size).all()  # sent and sent back, four clients


@pytest.mark.parametrize("rate", ["1e3", "1e6", "1e9", "1e12"])
def test_a_run_that_diverges_does_not_end_the_others(call, tmp_path, rate):
    code, _, err = call(
        *TINY, "--learning-rate", rate, "--aggregations", "normalised", "--out", "run"
    )
    assert (code, err) == (0, "")
    assert np.isfinite(rundir.load_checkpoint(tmp_path / "run")["engine"]["models"]).all()


def test_a_fedprox_run_beside_fedavg_differs_from_it_and_has_its_own_rows(call, tmp_path):
    code, out, err = call(*TINY, "--selectors", "random", "--mus", "0,3", "--out", "run")
    assert (code, err) == (0, "")
    assert "3" in re.findall(r"iid data, paper rule, mu (\S+)", out)
    with (tmp_path / "run" / "summary.csv").open(newline="") as file:
        assert [float(row["mu"]) for row in csv.DictReader(file)] == [0.0, 3.0]
    records = rundir.load_records(tmp_path / "run", 6)
    assert np.array_equal(records["clients"][:, 0], records["clients"][:, 1])
    assert not np.array_equal(records["loss"][:, 0], records["loss"][:, 1])


def test_accuracy_curves_and_owners_are_drawn(call, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "has_matplotlib", lambda: True)
    code, out, err = call(*TINY, "--evaluate-every", "4", "--out", "run")
    assert (code, err) == (0, "")
    drawn = {path.name for path in (tmp_path / "run").iterdir() if path.suffix in (".png", ".svg")}
    names = ("accuracy", "left-out", "labels-left-out", "owners-iid")
    assert drawn == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    assert all(f"{name}.png" in out for name in names)


def test_curves_skip_the_rounds_that_were_not_evaluated():
    pytest.importorskip("matplotlib")
    curve = np.array([[np.nan, 0.2, np.nan, 0.6], [np.nan, 0.4, np.nan, 0.8]])
    figure = figures.draw(accuracy_over_rounds({"iid, paper": {"random": curve}}))
    (line,) = figure.axes[0].get_lines()
    assert line.get_xdata().tolist() == [2, 4]
    np.testing.assert_allclose(line.get_ydata(), [0.3, 0.7])


def test_bars_of_a_client_add_up_to_its_samples():
    pytest.importorskip("matplotlib")
    counts = np.array([[3, 0, 2], [1, 4, 0]])
    panel = figures.draw(labels_per_client({"": counts})).axes[0]
    tops = {}
    for label, bars in enumerate(panel.containers):
        for client, bar in enumerate(bars):
            assert bar.get_height() == counts[client, label]
            assert bar.get_y() == counts[client, :label].sum()
            tops[client] = bar.get_y() + bar.get_height()
    assert tops == {0: 5, 1: 5}


def test_help_names_every_setting_with_its_meaning(call):
    shown = [call(flag) for flag in ("--help", "--help-all")]
    assert [(code, err) for code, _, err in shown] == [(0, ""), (0, "")]
    out = "".join(text for _, text, _ in shown)
    flags = [f"--{name.replace('_', '-')}" for name in ComparisonConfig().as_dict()]
    assert [
        flag
        for flag in [*flags, "--config", "--resume", "--overwrite", "--out", "--data"]
        if flag not in out
    ] == []


def test_labels_that_run_out_are_dealt_again_if_asked():
    labels = np.repeat(np.arange(4), 25)
    data = Dataset("own", np.zeros((100, 2), dtype=np.float32), labels, 4)
    shared = {}
    for refill in (False, True):
        of = ComparisonConfig(clients=10, cohort=2, samples_per_client=10, refill=refill)
        owners = deal_samples(of, data, "primary-label", 0)
        shared[refill] = 100 - np.unique(np.concatenate([*owners.train, *owners.test])).size
    assert shared[False] == 0
    assert shared[True] > 0
