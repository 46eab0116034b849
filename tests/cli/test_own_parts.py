"""Parts of one's own on the command line: from files, modules and installed packages."""

import csv
import hashlib
import json
import tomllib
from pathlib import Path

import pytest

from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.parts import part_folder
from fedcohort.lab.tracking import tracked_runs
from fedcohort.reports import figures

SOURCE = """
from itertools import repeat

import numpy as np
from torch import nn

from fedcohort import BaseSelector, Random
from fedcohort.aggregation.base import Rule
from fedcohort.data import Dataset
from fedcohort.world.base import World
from fedcohort.world.options import MissingData

five = 5


class Last(BaseSelector):
    "Ask the clients with the highest numbers."

    def choose(self, round, size, present):
        clients = np.arange(self.num_clients - size, self.num_clients)
        clients = np.broadcast_to(clients, (*self.shape[:-1], size))
        return clients, np.ones(clients.shape)


class Greedy(Last):
    needs_losses = True


def uniform(federation):
    return Random(federation.num_clients, federation.cohort_size, rng=federation.rng)


def number(federation):
    return 5


class Counting(Rule):
    "Average the updates; clients that were heard of often count less."

    normalises = True
    client_arrays = ("heard",)

    def __init__(self, setting):
        super().__init__(setting)
        self.heard = np.zeros(self.shape)

    def weigh(self, arrivals):
        heard = np.take_along_axis(self.heard, arrivals.clients, axis=1)
        return arrivals.shares / (1 + heard)

    def learn(self, arrivals):
        heard = np.take_along_axis(self.heard, arrivals.clients, axis=1)
        np.put_along_axis(self.heard, arrivals.clients, heard + arrivals.valid, axis=1)


class Unfinished(Rule):
    def __init__(self, setting):
        super().__init__(setting.sizes)


def even(conditions):
    "Clients with even numbers always answer, others never."
    answers = np.arange(conditions.num_clients) % 2 == 0
    rows = np.broadcast_to(answers, (len(conditions.seeds), conditions.num_clients))
    return World(repeat(rows), answers.astype(float))


def by_label(conditions):
    "Clients answer if label 0 is not among their samples more often than every fourth time."
    if conditions.label_counts is None:
        raise MissingData("by_label must know the labels that clients own, got none")
    answers = 4 * conditions.label_counts[..., 0] <= conditions.label_counts.sum(axis=-1)
    return World(repeat(answers), answers.astype(float))


def few(conditions):
    return World(even(conditions).rows, np.ones(3))


def broken(conditions):
    return 1 / 0


def linear(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes))


def clouds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=240)
    x = rng.normal(size=(240, 4)) + 2 * np.eye(4)[y]
    return Dataset("clouds", x.astype(np.float32), y, num_classes=3)


def pieces(labels, num_clients, rng, samples_per_client):
    "Cut the samples into as many pieces as there are clients."
    return np.array_split(rng.permutation(len(labels)), num_clients)
"""
SMALL = (
    "--dataset=mine.py:clouds",
    "--model=mine.py:linear",
    "--world=mine.py:even",
    "--selectors=random,mine.py:Last,mine.py:uniform",
    "--partitions=iid",
    "--aggregations=paper,mine.py:Counting",
    "--clients=8",
    "--cohort=3",
    "--seeds=1",
    "--rounds=4",
    "--checkpoint-every=2",
    "--mode=one-by-one",
)
SHORT_SIMULATION = ("--clients=8", "--cohort=3", "--rounds=6", "--seeds=2", "--out=run")


@pytest.fixture(autouse=True)
def mine(monkeypatch, tmp_path):
    """Write mine.py in the current folder; spare the time that figures take."""
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)
    (tmp_path / "mine.py").write_text(SOURCE)


@pytest.fixture
def call(fedcohort):
    """Return a function that runs `fedcohort compare` with few clients and rounds."""

    def run(*args):
        return fedcohort("compare", *SMALL, "--out", "run", *args)

    return run


def refused(answer):
    """Return the one line of an error."""
    code, out, err = answer
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def change_source():
    """Change the file so that nobody can run it."""
    Path("mine.py").write_text("raise KeyboardInterrupt\n")


def stop_after_two_rounds(monkeypatch):
    """Let the next run end as if it were interrupted after its second checkpoint."""
    save = rundir.save_records

    def interrupted(folder, first_round, records):
        if first_round == 2:
            raise KeyboardInterrupt
        save(folder, first_round, records)

    monkeypatch.setattr(rundir, "save_records", interrupted)
    return lambda: monkeypatch.setattr(rundir, "save_records", save)


def test_settings_keep_references_and_a_digest_and_tables_show_short_names(call, page_words):
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "compare: clouds, linear, K=8" in out

    settings = tomllib.loads(Path("run/settings.toml").read_text())
    assert settings["selectors"] == ["random", "mine.py:Last", "mine.py:uniform"]
    assert settings["aggregations"] == ["paper", "mine.py:Counting"]
    assert settings["world"] == "mine.py:even"
    assert settings["dataset"] == "mine.py:clouds"
    assert settings["model"] == "mine.py:linear"
    digest = hashlib.sha256(Path("mine.py").read_bytes()).hexdigest()
    names = ["Last", "uniform", "even", "Counting", "linear", "clouds"]
    assert rundir.read_sources(Path("run")) == {f"mine.py:{name}": digest for name in names}

    rows = list(csv.DictReader(Path("run/summary.csv").read_text().splitlines()))
    assert [row["selector"] for row in rows] == ["random", "Last", "uniform"] * 2
    assert {row["aggregation"] for row in rows} == {"paper", "Counting"}
    # Of the clients 5, 6 and 7 only the sixth answers in this world.
    assert float(rows[1]["success"]) == pytest.approx(1 / 3)
    page = page_words(Path("run/report.html"))
    assert "Clients fail as the world even says" in page
    assert "uniform" in page


def test_a_finished_run_is_shown_without_its_sources(call, fedcohort):
    assert call()[0] == 0
    Path("mine.py").unlink()
    assert fedcohort("report", "run")[0] == 0
    assert fedcohort("watch", "run", "--once")[0] == 0
    code, out, _ = call()
    assert code == 0
    assert "Last" in out


def test_showing_and_listing_run_no_source(call, fedcohort):
    assert call()[0] == 0
    change_source()
    assert fedcohort("report", "run")[0] == 0
    assert fedcohort("watch", "run", "--once")[0] == 0
    assert fedcohort("list")[0] == 0
    message = refused(call())
    assert "mine.py:Last must be what the run in run was begun with, got a changed" in message


def test_a_run_goes_on_only_with_the_source_it_was_begun_with(call, monkeypatch):
    go_on = stop_after_two_rounds(monkeypatch)
    assert call()[0] == 130
    go_on()
    change_source()
    for flags in (("--resume",), ("--resume", "--rounds=4")):
        assert "got a changed source; choose another folder" in refused(call(*flags))

    Path("mine.py").unlink()
    assert "must be in a file that is there, got no file mine.py" in refused(call("--resume"))

    Path("mine.py").write_text(SOURCE)
    assert call("--resume")[0] == 0


def test_a_run_that_goes_on_equals_one_that_was_not_stopped(call, monkeypatch):
    go_on = stop_after_two_rounds(monkeypatch)
    assert call()[0] == 130
    go_on()
    assert call("--resume")[0] == 0
    assert call("--out=whole")[0] == 0
    records, whole = (rundir.load_records(Path(name)) for name in ("run", "whole"))
    for name, values in whole.items():
        assert (values == records[name]).all(), name


def test_a_changed_source_may_overwrite_a_run(call):
    assert call()[0] == 0
    Path("mine.py").write_text(SOURCE + "# changed\n")
    assert call("--overwrite")[0] == 0
    digest = hashlib.sha256(Path("mine.py").read_bytes()).hexdigest()
    assert set(rundir.read_sources(Path("run")).values()) == {digest}

    plain = ("--dataset=digits", "--model=mlp", "--world=bernoulli", "--selectors=random")
    plain += ("--aggregations=paper",)
    assert call("--overwrite", *plain)[0] == 0
    assert not Path("run/sources.json").exists()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--selectors=mine.py:Lats", "selector 'mine.py:Lats' must be a name in mine.py"),
        ("--selectors=none.py:Last", "selector 'none.py:Last' must be in a file that is there"),
        ("--selectors=mine.py:five", "must be a subclass of BaseSelector or a function"),
        ("--selectors=mine.py:number", "got a int without num_clients, cohort_size, select"),
        ("--selectors=mine.py:even", "got AttributeError: 'Federation' object has no attribute"),
        ("--selectors=no_such.module:Last", "must be in a module that is installed"),
        ("--selectors=mine.py", "selector must be package.module:name or file.py:name"),
        ("--aggregations=mine.py:linear", "must be a subclass of Rule, got <function linear"),
        ("--aggregations=mine.py:Unfinished", "'Setting' object has no attribute 'sizes' in line"),
        ("--aggregations=mine.py:Conuting", "got no 'Conuting' there; did you mean 'Counting'"),
        ("--world=mine.py:broken", "ZeroDivisionError: division by zero in line "),
        ("--world=mine.py:few", "world 'mine.py:few' must have shape (8,), got (3,)"),
        ("--world=mine.py:five", "world 'mine.py:five' must be a function or a class, got 5"),
        ("--world=mine.py:clouds", "world 'mine.py:clouds' must be made without an error"),
        ("--model=mine.py:five", "model 'mine.py:five' must be a function or a class, got 5"),
        ("--model=builtins:max", "model 'builtins:max' must "),
        ("--model=builtins:divmod", "model 'builtins:divmod' must "),
        ("--dataset=mine.py:linear", "dataset 'mine.py:linear' must be made without an error"),
        ("--dataset=builtins:list", "dataset 'builtins:list' must return a Dataset, got []"),
    ],
)
def test_a_mistake_gets_one_line_and_nothing_is_written(call, flag, words):
    assert words in refused(call(flag))
    assert not Path("run").exists()


def test_an_error_in_the_middle_of_a_run_gets_one_line_that_says_where(call):
    line = "        clients = np.arange(self.num_clients - size, self.num_clients)"
    number = SOURCE.splitlines().index(line) + 1
    Path("mine.py").write_text(SOURCE.replace(line, line.replace("size", "'x' * (round > 1)", 1)))
    message = refused(call())
    assert message.startswith("error: UFuncTypeError: ") or "TypeError: " in message
    assert message.endswith(f" in line {number} of mine.py\n")


def test_a_world_may_ask_for_data_that_only_a_comparison_has(call, fedcohort):
    assert call("--world=mine.py:by_label")[0] == 0
    flags = ("--selectors=random", "--world=mine.py:by_label", *SHORT_SIMULATION)
    message = refused(fedcohort("simulate", *flags, "--out=other"))
    assert "by_label must know the labels that clients own, got none in line" in message


def test_a_simulation_plays_ones_own_and_keeps_its_digest(fedcohort):
    flags = ("--selectors=mine.py:Last,random", "--world=mine.py:even", *SHORT_SIMULATION)
    code, out, err = fedcohort("simulate", *flags, "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)["rows"]
    assert [row["selector"] for row in rows] == ["Last", "random"]
    assert rows[0]["success ratio"] == pytest.approx(1 / 3)
    settings = json.loads(Path("run/settings.json").read_text())
    assert settings["selectors"] == ["mine.py:Last", "random"]
    assert set(rundir.read_sources(Path("run"))) == {"mine.py:Last", "mine.py:even"}

    change_source()
    assert "got a changed source" in refused(fedcohort("simulate", *flags))
    Path("mine.py").unlink()
    assert fedcohort("simulate", *flags)[0] == 0
    assert fedcohort("report", "run")[0] == 0


def test_a_simulation_refuses_ones_own_selector_that_needs_losses(fedcohort):
    message = refused(fedcohort("simulate", "--selectors=mine.py:Greedy", *SHORT_SIMULATION))
    assert "must need no losses where nothing is trained, got 'mine.py:Greedy'" in message


def test_a_reproduction_with_ones_own_model_goes_on_only_with_the_same_source(fedcohort):
    flags = ("--dataset=digits", "--model=mine.py:linear", "--rounds=2", "--seeds=1", "--mus=0")
    flags += ("--selectors=random", "--partitions=iid", "--out=run")
    assert fedcohort("reproduce", "figure5", *flags)[0] == 0
    (part,) = rundir.parts_folder(Path("run")).iterdir()
    assert set(rundir.read_sources(part)) == {"mine.py:linear"}

    change_source()
    message = refused(fedcohort("reproduce", "figure5", *flags))
    assert f"mine.py:linear must be what the run in {part} was begun with" in message
    assert fedcohort("report", "run")[0] == 0


def test_installed_packages_register_names(fedcohort, install):
    groups = {
        "fedcohort.selectors": {"last": "own_parts:Last"},
        "fedcohort.worlds": {"even": "own_parts:even"},
        "fedcohort.models": {"linear": "own_parts:linear"},
        "fedcohort.datasets": {"clouds": "own_parts:clouds"},
        "fedcohort.aggregations": {"counting": "own_parts:Counting"},
    }
    path = install("my-parts", "own_parts", SOURCE, groups)
    flags = ("--selectors=last", "--world=even", "--model=linear", "--dataset=clouds")
    flags += ("--aggregations=counting", "--out=run")
    code, out, err = fedcohort("compare", *SMALL, *flags)
    assert (code, err) == (0, "")
    assert "compare: clouds, linear" in out
    assert "counting rule" in out
    settings = tomllib.loads(Path("run/settings.toml").read_text())
    assert settings["selectors"] == ["my-parts:last"]
    assert settings["world"] == "my-parts:even"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert rundir.read_sources(Path("run"))["my-parts:clouds"] == digest

    assert "last (my-parts)" in fedcohort("list")[1]
    listed = json.loads(fedcohort("list", "--json")[1])
    assert listed["installed"]["worlds"] == {"even": ["my-parts"]}

    for file in path.parent.rglob("*"):
        if file.is_file():
            file.unlink()
    assert fedcohort("report", "run")[0] == 0


def test_figures_of_ones_own_partitions_stay_in_the_folder(call, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "has_matplotlib", lambda: True)
    (tmp_path / "parts").mkdir()
    outside = f"parts/../../{tmp_path.name}/mine.py:pieces"
    code, out, err = call("--selectors=random", f"--partitions=iid,{outside}")
    assert (code, err) == (0, "")
    drawn = {path.relative_to(tmp_path) for path in tmp_path.rglob("owners-*")}
    names = [f"owners-{label}.{end}" for label in ("iid", "pieces") for end in ("png", "svg")]
    assert drawn == {Path("run", name) for name in names}
    assert {path.parent.name for path in tmp_path.rglob("*.png")} == {"run"}
    assert "owners-pieces.png" in out


def test_lists_are_as_before_without_such_packages(fedcohort):
    assert "installed" not in json.loads(fedcohort("list", "--json")[1])


def test_names_of_files_and_runs_are_made_of_labels():
    config = ComparisonConfig(
        dataset="data/own.py:clouds",
        selectors=("a/mine.py:Last", "b.py:Last", "random"),
        aggregations=("a/mine.py:rule",),
        partitions=("iid",),
    )
    assert list(tracked_runs(config)) == [
        "iid rule mine.Last",
        "iid rule b.Last",
        "iid rule random",
    ]
    folder = part_folder(config, Path("runs"))
    assert folder.parent == Path("runs")
    assert folder.name.startswith("own-k7-rule-T120-")
