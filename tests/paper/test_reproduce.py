import csv
import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from made import TINY, result

from fedcohort.cli.pages import load_findings
from fedcohort.lab import folder as run_folder
from fedcohort.lab import training
from fedcohort.lab.archive import gather_results, save
from fedcohort.lab.shards import Shard
from fedcohort.paper import reproduce
from fedcohort.paper.artefacts import ARTEFACTS

sys.path.append(str(Path(__file__).parents[1] / "data"))
from published import idx_files, put

pytestmark = pytest.mark.usefixtures("scratch")


def parts(out):
    return sorted(path.parent for path in Path(out).glob("runs/*/settings.toml"))


def same_runs(one, other):
    """Return whether two folders hold one part each with equal records and checkpoint bits."""
    (a,), (b,) = parts(one), parts(other)
    pairs = [(run_folder.load_records(a), run_folder.load_records(b))]
    pairs.append(tuple(run_folder.load_checkpoint(folder)["engine"] for folder in (a, b)))
    return a.name == b.name and all(
        x.keys() == y.keys() and all(x[name].tobytes() == y[name].tobytes() for name in x)
        for x, y in pairs
    )


@pytest.mark.slow
def test_everything_is_reproduced_at_a_small_scale_then_only_shown_then_shown_from_compact_results(
    call, monkeypatch
):
    args = ("all", "--dataset", "digits", "--rounds", "4", "--seeds", "1")
    code, out, err = call(*args, "--out", "run", "--export", "small")
    assert (code, err) == (0, "")
    for name in ARTEFACTS:
        assert (Path("run") / name / f"{name}.md").read_text().startswith("# ")
        assert (Path("run") / name / f"{name}.tex").exists()
    assert "pow-d: from its training runs" in out  # figures 3 and 4 show it once it is trained
    assert "not run" not in (Path("run") / "table3" / "table3.md").read_text()
    trained = [run.config for run in gather_results(Path("run"))]
    # table3, k = 10 and 30, two rules, exact sampling with robust, d = 30 and 70: none twice
    assert len(trained) == 28 + 2 * 14 + 2 * 8 + 10 + 4

    monkeypatch.setattr(training, "Trial", None)  # nothing is trained again
    before = {path: path.read_bytes() for path in Path("run").rglob("*.csv")}
    assert call("table3", "figure7", *args[1:], "--out", "run")[0] == 0
    assert {path: path.read_bytes() for path in Path("run").rglob("*.csv")} == before
    code, _, err = call(*args, "--from", "small", "--out", "again")
    assert (code, err) == (0, "--from shows all runs: --seeds chooses none.\n")
    again = {path.relative_to("again"): path.read_bytes() for path in Path("again").rglob("*.csv")}
    assert again == {path.relative_to("run"): content for path, content in before.items()}


def test_a_time_budget_stops_between_rounds_and_the_same_call_goes_on_to_the_same_end(monkeypatch):
    seconds = itertools.count()
    monkeypatch.setattr(training, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(reproduce, "monotonic", lambda: next(seconds))
    assert reproduce.run(["table3"], Path("whole"), **TINY).stopped == ""
    stops = []
    for _ in range(9):
        done = reproduce.run(["table3", "figure6"], Path("run"), minutes=4 / 60, **TINY)
        stops.append(done.stopped.rpartition("at ")[2])
        if not done.stopped:
            break
    assert stops == ["round 3 of 7", "round 6 of 7", ""]
    assert same_runs("run", "whole")


def test_runs_stop_at_a_round_and_a_later_call_goes_on_to_the_same_end():
    reproduce.run(["table3"], Path("whole"), **TINY)
    early = reproduce.run(["table3"], Path("run"), stop_at=4, **TINY)
    assert early.stopped == ""
    assert {len(run.accuracy) for run in early.results.runs} == {4}
    again = reproduce.run(["table3"], Path("run"), stop_at=4, **TINY)
    assert {len(run.accuracy) for run in again.results.runs} == {4}
    reproduce.run(["table3"], Path("run"), **TINY)
    assert same_runs("run", "whole")


@pytest.mark.parametrize("rounds_before", [3, 7])
def test_runs_that_were_begun_with_other_losses_are_refused(rounds_before):
    reproduce.run(["table3"], Path("run"), stop_at=rounds_before, **TINY)
    (settings,) = Path("run").glob("runs/*/settings.toml")
    before = settings.read_bytes()
    message = (
        r"^losses_every must be that of the runs in run, 0, got 3; leave it out to go on with "
        r"them, or choose another folder with --out$"
    )
    for names in (["table3"], ["figure4", "figure6"]):
        with pytest.raises(ValueError, match=message):
            reproduce.run(names, Path("run"), losses_every=3, **TINY)
    with pytest.raises(ValueError, match=message):
        reproduce.train_shard(["table3"], Path("run"), Shard(1, 2), losses_every=3, seeds=2, **TINY)
    assert settings.read_bytes() == before
    assert not Path("run/participation").exists()

    # The same value goes on, and so do runs that nobody asked for before.
    reproduce.run(["table3"], Path("run"), losses_every=0, **TINY)
    reproduce.run(["table3"], Path("run"), losses_every=3, first_seed=1, **TINY)
    runs = gather_results(Path("run"))
    assert {run.config.losses_every for run in runs} == {0, 3}
    assert all((run.class_loss is None) == (run.key.seed == 0) for run in runs)
    with pytest.raises(ValueError, match=r"losses_every must be .* in run, 0 and 3, got 2; leave"):
        reproduce.run(["table3"], Path("run"), losses_every=2, seeds=2, **TINY)


def test_losses_go_on_with_the_same_value_and_without_one():
    reproduce.run(["table3"], Path("run"), losses_every=2, stop_at=1, **TINY)
    reproduce.run(["table3"], Path("run"), losses_every=2, stop_at=3, **TINY)
    with pytest.raises(ValueError, match=r"losses_every must be .* in run, 2, got 5; leave"):
        reproduce.run(["table3"], Path("run"), losses_every=5, **TINY)
    done = reproduce.run(["table3"], Path("run"), **TINY)
    assert all(run.finished and run.class_loss is not None for run in done.results.runs)
    reproduce.run(["table3"], Path("run"), losses_every=2, **TINY)
    (folder,) = parts("run")
    by_class = run_folder.load_records(folder)["class_loss"]
    is_recorded = np.isfinite(by_class).all(axis=(1, 2))
    assert is_recorded.tolist() == [False, True, False, True, False, True, True]


def test_other_losses_are_refused_in_one_line(call):
    small = ("--dataset", "digits", "--rounds", 1, "--selectors", "random")
    small += ("--partitions", "iid", "--mus", 0, "--out", "run")
    assert call("table3", *small)[0] == 0
    code, out, err = call("table3", *small, "--losses-every", 1)
    assert (code, out) == (2, "")
    assert err.startswith("error: losses_every must be that of the runs in run, 0, got 1; ")
    assert err.count("\n") == 1
    assert call("table3", *small)[0] == 0


def test_independent_draws_are_trained_on_request_and_shown_where_they_were():
    plain = reproduce.run(["table3"], Path("run"), **TINY)
    assert list(plain.reports["table3"].tables) == [
        "iid, FedAvg",
        "iid, FedProx",
        "non-iid, FedAvg",
        "non-iid, FedProx",
    ]
    done = reproduce.run(["table3"], Path("run"), **TINY | {"partitions": ("independent-label",)})
    rows = done.reports["table3"].tables["non-iid by independent draws, FedAvg"]
    shown = {row["scheme"] for row in rows if row["final"] != "not run"}
    assert shown == {"E3CS-inc", "Random", "pow-d"}


def test_a_killed_run_goes_on_from_its_last_checkpoint(call, monkeypatch):
    reproduce.run(["table3"], Path("whole"), **TINY)
    asked = []

    def interrupt():
        asked.append(1)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(training.Training, "should_stop", lambda self: interrupt())
    with pytest.raises(KeyboardInterrupt):
        reproduce.run(["table3"], Path("run"), **TINY)
    (folder,) = parts("run")
    assert run_folder.load_checkpoint(folder)["round"] == 3
    monkeypatch.setattr(training.Training, "should_stop", lambda self: False)
    assert reproduce.run(["table3"], Path("run"), **TINY).stopped == ""
    assert same_runs("run", "whole")


def test_subsets_are_joined_in_the_report_and_only_the_rest_is_trained():
    for subset in ({"selectors": ("random",)}, {"selectors": ("e3cs-inc",)}):
        done = reproduce.run(["table3"], Path("run"), **TINY | subset)
    rows = {row["scheme"]: row for row in done.reports["table3"].tables["non-iid, FedAvg"]}
    assert {name for name, row in rows.items() if row["final"] != "not run"} == {
        "Random",
        "E3CS-inc",
    }
    reproduce.run(["table3"], Path("run"), **TINY)
    selectors = [run_folder.read_settings(folder)["selectors"] for folder in parts("run")]
    assert sorted(selectors) == [["e3cs-inc"], ["pow-d"], ["random"]]
    reproduce.run(["table3"], Path("run"), **TINY, seeds=2)
    assert len(parts("run")) == 4
    assert sorted(run.config.first_seed for run in gather_results(Path("run"))) == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]


def letters(folder):
    """Write data in the layout of EMNIST-Letters: transposed images, labels 1 to 26.

    Each letter has a bright bar in a row of its own.
    """
    files, (x, y, test_x, test_y) = idx_files("emnist-letters-", "test", count=624, low=1, high=26)
    for images, labels in ((x, y), (test_x, test_y)):
        images //= 16
        for image, letter in zip(images, labels, strict=True):
            image[:, letter] = 255
    from published import idx

    put(
        folder / "emnist-letters",
        {n: idx(a) for n, a in zip(files, (x, y, test_x, test_y), strict=True)},
        gzipped=True,
    )


def test_table2_runs_end_to_end_where_the_letters_are(call, tmp_path):
    letters(tmp_path / "data")
    small = {
        "rounds": 5,
        "samples_per_client": 6,
        "batch_size": 5,
        "epochs": (1,),
        "official_every": 2,
        "mode": "one-by-one",
    }
    subset = {"selectors": ("fedcs", "random"), "partitions": ("iid",), "mus": (0.5,)}
    done = reproduce.run(
        ["table2", "figure5"], Path("run"), data=tmp_path / "data", **small, **subset
    )
    assert (done.absent, done.stopped) == ({}, "")
    one, other = gather_results(Path("run"))
    assert {one.config.dataset, one.config.model} == {"emnist-letters", "emnist-cnn"}
    assert np.isnan(one.official).tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]  # every second round and the last
    assert ((other.official[[1, 3, 4]] >= 0) & (other.official[[1, 3, 4]] <= 1)).all()
    rows = {row["scheme"]: row for row in done.reports["table2"].tables["iid, FedProx"]}
    assert rows["FedCS"]["paper @65"].startswith("15")
    assert "paper final" not in rows["FedCS"]  # five rounds are not the paper's 400
    assert rows["pow-d"]["@65"] == "not run"


def test_absent_data_are_said_aloud_and_the_rest_is_done(call):
    code, out, err = call(
        "table2", "figure3", "--rounds", "5", "--seeds", "1", "--out", "run", "--data", "none"
    )
    assert (code, err) == (1, "")
    assert "SKIPPED: everything on emnist-letters" in out
    assert "gzip.zip" in out
    assert (Path("run") / "figure3" / "figure3.md").exists()
    assert "not run" in (Path("run") / "table2" / "table2.md").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("table4",), "name must be one of .*table3.*, got 'table4'"),
        (("table3", "--seeds", "0"), "seeds .* at least 1, got 0"),
        (("table3", "--rounds", "0"), "rounds .* at least 1, got 0"),
        (("table3", "--selectors", "randm"), "selector .*, got 'randm'; did you mean 'random'"),
        (
            ("table3", "--partitions", "shards"),
            "partition must be one of iid, non-iid, independent-label, got 'shards'",
        ),
        (("table3", "--partitions", "iid,niid"), "got 'niid'; did you mean 'non-iid'"),
        (("table3", "--partitions", "primary"), "partition must be one of iid, non-iid, ind"),
        (("table3", "--mus", "0.3"), "mus .* 0, 0.5, got 0.3"),
        (("table3", "--mus", "x"), "mus .* numbers, got 'x'"),
        (("table3", "--selectors", ","), "selectors .* at least one"),
        (("table3", "--dataset", "cifar"), "dataset .*, got 'cifar'; did you mean 'cifar10'"),
        (("table3", "--model", "resnet"), "model .*, got 'resnet'"),
        (
            ("figure3", "table3", "--dataset", "missing.npz"),
            r"dataset must be a file, got missing\.npz, which does not exist",
        ),
        (("table3", "--time-budget", "0"), "time_budget .* above 0, got 0"),
        (("table3", "--precision", "bf16"), "precision must be float32 on a CPU, got 'bf16'"),
        (("table3", "--device", "gpu", "--dataset", "digits"), "device .*, got 'gpu'"),
        (("table3", "--candidates", "7"), "candidates .* between 20 and 100, got 7"),
        (("table3", "--from", "nowhere"), "from must be a folder of results, got nowhere"),
        (("table3", "claims", "--candidates", "25"), "candidates .* between 30 and 100, got 25"),
        (("figure3", "table3", "--device", "quantum"), "device .*, got 'quantum'"),
        (
            ("table3", "--device", "auto", "--precision", "bf16"),
            "precision must be float32 on a CPU, got 'bf16'",
        ),
        (
            ("figure3", "regret", "--device", "tpu"),
            "device must not be given for figure3, regret alone, .*, got tpu",
        ),
        (
            ("table3", "--from", ".", "--time-budget", "5"),
            "time_budget must not be given with --from, .*, got 5",
        ),
        (
            ("table3", "--from", ".", "--device", "cuda"),
            "device must not be given with --from, .*, got cuda",
        ),
        (
            ("table3", "--from", ".", "--slots", "56"),
            "slots must not be given with --from, .*, got 56",
        ),
        (
            ("table3", "--from", ".", "--overwrite"),
            "overwrite must not be given with --from, which trains nothing, got it$",
        ),
        (
            ("table3", "--shard", "1/2", "--overwrite"),
            "overwrite must not be given where the seeds are shared, got it$",
        ),
        (("table3", "--slots", "0"), "slots must be a whole number at least 1, got 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_ends_with_code_2_and_one_line(call, tmp_path, monkeypatch, args, message):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = call(*args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert re.search(message, err)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_with_code_130_and_says_how_to_go_on(call, monkeypatch):
    def interrupted(self, wanted):
        raise KeyboardInterrupt

    monkeypatch.setattr(training.Training, "complete", interrupted)
    code, out, err = call("table3", "--dataset", "digits", "--out", "run")
    assert (code, out) == (130, "")
    assert err == "error: interrupted; the same command goes on\n"


def test_out_that_is_a_file_is_refused(call):
    Path("taken").write_text("mine")
    code, _, err = call("table3", "--dataset", "digits", "--out", "taken")
    assert code == 2
    assert "out must be a folder, got taken" in err


def some_results(folder="some"):
    """Write a run of another task, and return the folder."""
    Path(folder).mkdir()
    save(Path(folder) / "runs-mnist.npz", [result(accuracy=(0.1,), dataset="mnist")])
    return folder


def test_what_a_folder_does_not_hold_is_said(call):
    some_results("some")
    code, out, _ = call("figure3", "table3", "--from", "some", "--out", "shown")
    assert code == 0
    assert "Not run: some holds no results of it." in out
    assert "not run" in out


@pytest.mark.parametrize("out", [(), ("--out", "shown")])
def test_a_folder_without_results_is_refused_and_left_as_it_was(call, tmp_path, out):
    Path("empty").mkdir()
    Path("note.txt").write_text("mine")
    for source, words in (
        ("empty", "which holds none"),
        ("missing", "which does not exist"),
        ("note.txt", "which is a file"),
    ):
        code, printed, err = call("figure3", "table3", "--from", source, *out)
        assert (code, printed) == (2, "")
        assert err == f"error: from must be a folder of results, got {source}, {words}\n"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "note.txt"]


def test_the_page_of_a_reproduction_without_results_is_drawn_again(call, monkeypatch):
    absent = ("table2", "--rounds", 5, "--seeds", 1, "--data", "none", "--out", "run")
    assert call(*absent)[0] == 1
    Path("run/report.html").unlink()
    assert load_findings(Path("run")).settings["rounds"] == 5
    code, _, err = call("table2", "--from", "run")
    assert (code, err.count("which holds none")) == (2, 1)


def test_out_is_checked_before_records_are_read(call, monkeypatch):
    some_results("some")
    Path("taken").write_text("mine")
    monkeypatch.setattr(reproduce, "read_results", None)
    code, _, err = call("table3", "--from", "some", "--out", "taken")
    assert code == 2
    assert "out must be a folder, got taken" in err


def test_flags_that_choose_runs_to_train_choose_none_to_show(call):
    small = ("--dataset", "digits", "--rounds", 1, "--partitions", "iid", "--mus", 0)
    assert call("table3", *small, "--seeds", 2, "--selectors", "random", "--out", "run")[0] == 0
    plain = call("table3", "--dataset", "digits", "--rounds", 1, "--from", "run", "--json")
    assert (plain[0], plain[2]) == (0, "")
    shown = call(
        "table3",
        *small,
        "--seeds",
        1,
        "--first-seed",
        7,
        "--from",
        "run",
        "--out",
        "shown",
        "--json",
    )
    note = "--from shows all runs: --seeds, --first-seed, --partitions and --mus choose none.\n"
    assert (shown[0], shown[2]) == (0, note)
    for name in ("tables", "numbers"):
        assert json.loads(shown[1])[name] == json.loads(plain[1])[name]
    request = run_folder.read_request(Path("shown"))
    assert request["changes"] == {"rounds": 1, "dataset": "digits"}
    assert load_findings(Path("shown")).settings == request["changes"]

    _, _, err = call("table3", *small[:4], "--seeds", 1, "--from", "run")
    assert err == "--from shows all runs: --seeds chooses none.\n"
    code, _, err = call("table3", *small[:4], "--selectors", "randm", "--from", "run")
    assert (code, err.count("\n")) == (2, 1)
    # The page of what was trained says which runs were asked for, when it is drawn again, too.
    assert load_findings(Path("run")).settings["seeds"] == 2


def test_records_with_a_gap_are_refused_not_shown_as_unfinished_for_ever():
    reproduce.run(["table3"], Path("run"), **TINY)
    (gone,) = Path("run/runs").glob("*/records/0000003.npz")
    gone.unlink()
    with pytest.raises(ValueError, match=r"records must hold rounds 0 to 6, got 3 of them"):
        reproduce.run(["table3"], Path("run"), **TINY)


def test_figures_without_training_show_pow_d_of_as_many_clients_alone():
    done = reproduce.run(
        ["figure3", "table3"], Path("run"), **TINY | {"seeds": 1}
    )  # 100 clients there, 12 here
    assert "pow-d" not in {row["selector"] for row in done.reports["figure3"].tables["Summary"]}


def test_the_claims_on_selection_are_judged_by_figure4_if_there_is_no_figure3():
    reproduce.run(["figure4"], Path("run"), rounds=7, seeds=2)
    found = reproduce.show(["claims"], Path("run"), rounds=7).reports["claims"].tables["Verdicts"]
    verdicts = {(row["claim"], row["on"]): row["verdict"] for row in found}
    assert verdicts["success order", "selection, T=7"] != "not run"


def test_a_subset_without_runs_is_refused_before_anything_is_written(call):
    code, out, err = call("server_step", "--dataset", "digits", "--rounds", 2, "--mus", 0.5)
    assert (code, out) == (2, "")
    assert "must leave a run of server_step, got mus 0.5" in err
    assert not Path("runs").exists()


@pytest.mark.parametrize("file", ["settings.toml", "settings.json", "rounds.jsonl"])
def test_a_folder_of_another_run_is_refused_and_left_as_it_was(call, file):
    Path("mine").mkdir()
    (Path("mine") / file).write_text("")
    code, out, err = call("figure3", "--rounds", 2, "--out", "mine")
    assert (code, out) == (2, "")
    assert "out must not hold a run of compare, simulate or Flower, got mine" in err
    assert [path.name for path in Path("mine").iterdir()] == [file]


def test_the_regret_plays_all_samplers_whatever_sampler_is_asked_for():
    reproduce.run(["regret"], Path("run"), rounds=3, seeds=1, sampler="systematic")
    again = reproduce.run(["regret"], Path("run"), rounds=3, seeds=1, sampler="pivotal")
    assert again.reports["regret"].title == "regret: K=100, k=20, T=3, 1 seed"


def test_other_data_are_played_once_for_both_tasks(call):
    call(
        "figure7",
        "--dataset",
        "digits",
        "--rounds",
        2,
        "--selectors",
        "random",
        "--partitions",
        "iid",
        "--out",
        "run",
    )
    with Path("run/figure7/figure7.csv").open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["selector"] == "random" and row["partition"] == "iid"
        ]
    assert [(row["k"], row["quantity"]) for row in rows] == [
        (k, quantity) for k in ("10", "20", "30") for quantity in ("@45", "@55", "@65", "final")
    ]


def test_one_network_of_two_in_a_folder_can_be_chosen(call):
    small = (
        "--dataset",
        "digits",
        "--rounds",
        1,
        "--selectors",
        "random",
        "--mus",
        0,
        "--partitions",
        "iid",
        "--out",
        "run",
    )
    for network in ((), ("--model", "small-cnn", "--seeds", 2)):
        assert call("table3", *network, *small)[0] == 0
    for network, runs in (((), 2), (("--model", "mlp"), 1), (("--model", "small-cnn"), 2)):
        code, out, _ = call(
            "table3", "--dataset", "digits", "--rounds", 1, *network, "--from", "run", "--json"
        )
        row = next(
            row
            for row in json.loads(out)["tables"]["table3"]["iid, FedAvg"]
            if row["scheme"] == "Random"
        )
        assert (code, row["runs"]) == (0, runs)
    _, out, _ = call("table3", "--dataset", "digits", "--rounds", 1, "--from", "run")
    assert "Not shown: 1 run on digits with model mlp" in " ".join(out.split())


def test_partitions_are_known_by_the_papers_word_too(call):
    small = (
        "--dataset",
        "digits",
        "--rounds",
        1,
        "--selectors",
        "random",
        "--mus",
        0,
        "--out",
        "run",
    )
    for word in ("non-iid", "primary-label"):
        assert call("table3", "--partitions", word, *small)[0] == 0
    assert [result.key.partition for result in gather_results(Path("run"))] == ["primary-label"]


def test_a_file_of_samples_that_has_changed_is_refused_though_all_is_trained():
    chance = np.random.default_rng(0)
    for attempt in range(2):
        np.savez(
            "mine.npz", x=chance.standard_normal((240, 5)).astype(np.float32), y=np.arange(240) % 3
        )
        if attempt:
            with pytest.raises(
                ValueError,
                match=r"dataset must be what the run in .* was begun with, got other samples",
            ):
                reproduce.run(["table3"], Path("run"), **TINY | {"dataset": "mine.npz"})
        else:
            assert (
                reproduce.run(["table3"], Path("run"), **TINY | {"dataset": "mine.npz"}).stopped
                == ""
            )


def test_a_part_that_was_begun_is_not_said_not_to_be(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(training, "monotonic", lambda: next(clock))
    monkeypatch.setattr(reproduce, "monotonic", lambda: next(clock))
    said = [
        reproduce.run(["table3"], Path("run"), minutes=minutes / 60, **TINY).stopped
        for minutes in (0.5, 3.5, 0.5)
    ]
    assert [words.partition(" ")[2] for words in said] == [
        "was not begun",
        "at round 3 of 7",
        "at round 3 of 7",
    ]


def test_never_and_not_published_are_told_apart_in_json(call):
    code, out, _ = call("table3", "--from", some_results(), "--json")
    numbers = json.loads(out)["numbers"]
    paper = {
        (row["selector"], row["partition"], row["mu"], row["quantity"]): row["paper"]
        for row in numbers["table3"]["table3"]
    }
    assert code == 0
    assert (paper["fedcs", "iid", 0.0, "@65"], paper["random", "iid", 0.0, "@65"]) == ("inf", 515)


def test_the_library_loads_neither_a_terminal_nor_a_drawing_library(tmp_path):
    import subprocess

    code = (
        "import sys; from fedcohort.paper import reproduce;"
        "print([name for name in ('typer', 'rich', 'matplotlib', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
