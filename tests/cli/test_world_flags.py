"""`--world` and `--world-file` of `simulate` and `compare`."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import load_comparison
from fedcohort.lab.config import ComparisonConfig, SimulationConfig
from fedcohort.lab.parts import part_folder
from fedcohort.lab.result import identity
from fedcohort.lab.simulation import load_simulation
from fedcohort.lab.training import Training
from fedcohort.reports import figures
from fedcohort.world.registry import WORLDS

SIMULATE = (
    "simulate", "--clients", "8", "--cohort", "3", "--rounds", "12", "--seeds", "2",
    "--selectors", "random,fedcs", "--out", "run",
)  # fmt: skip
COMPARE = (
    "compare", "--clients", "8", "--cohort", "3", "--rounds", "6", "--seeds", "1",
    "--selectors", "e3cs-0.5,fedcs", "--partitions", "iid", "--aggregations", "paper",
    "--samples-per-client", "20", "--epochs", "1,2", "--checkpoint-every", "2",
    "--mode", "one-by-one",
)  # fmt: skip
RECORDED = ("--world", "recorded", "--world-file", "world.npy")


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Spare the time that figures take."""
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)


@pytest.fixture
def call(fedcohort):
    """Return a function that runs the command line: exit code, output and errors."""
    return fedcohort


def answers(rounds=12, clients=8):
    """Return a recorded world in which the last client always answers and the first never."""
    table = np.random.default_rng(0).random((rounds, clients)) < 0.5
    table[:, 0] = False
    table[:, -1] = True
    return table


def same_records(one, other):
    pairs = [load_comparison(folder).records for folder in (one, other)]
    assert pairs[0].keys() == pairs[1].keys()
    return all(np.array_equal(pairs[0][name], pairs[1][name], equal_nan=True) for name in pairs[0])


def test_a_recorded_world_decides_who_arrives_in_a_simulation(call, tmp_path):
    np.save("world.npy", answers().astype(int))
    code, _, err = call(*SIMULATE, *RECORDED)
    assert (code, err) == (0, "")
    simulation = load_simulation(tmp_path / "run")
    assert (simulation.config.world, simulation.config.world_file) == ("recorded", "world.npy")
    for result in simulation.results.values():
        assert result.answering.tolist() == [answers().sum(axis=1).tolist()] * 2
    best = np.argsort(-answers().mean(axis=0), kind="stable")[:3]
    counts = simulation.results["fedcs"].counts
    assert counts[0, best].tolist() == [12, 12, 12]  # FedCS knows the recorded rates


def test_a_simulation_in_a_recorded_world_is_shown_again_and_has_a_page(call, tmp_path, page_words):
    np.save("world.npy", answers())
    _, first, _ = call(*SIMULATE, *RECORDED)
    (tmp_path / "world.npy").unlink()  # a stored simulation needs it no more
    assert call(*SIMULATE, *RECORDED) == (0, first, "")
    assert call("report", "run")[0] == 0
    assert "Clients fail as recorded in world.npy" in page_words(tmp_path / "run/report.html")


@pytest.mark.parametrize("command", [SIMULATE, (*COMPARE, "--out", "run")])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (answers(rounds=5), "rounds must be at most 5, .* got (12|6)"),
        (answers(clients=7), r"world\.npy must have 8 columns, one per client, got 7"),
        (np.full((12, 8), -1.0), r"world\.npy, row 1, column 1: must be seconds"),
        (None, r"world\.npy"),
    ],
    ids=["too few rounds", "other clients", "neither answers nor seconds", "no file"],
)
def test_a_world_that_does_not_fit_is_refused_before_anything_is_computed(
    call, tmp_path, command, table, message
):
    if table is not None:
        np.save("world.npy", table)
    code, out, err = call(*command, *RECORDED)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(message, err)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", [SIMULATE, (*COMPARE, "--out", "run")])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--world", "recoded"), "world must be one of .*, got 'recoded'; did you mean 'recorded'"),
        (("--world", "recorded"), "file must be given for the world 'recorded'"),
        (("--world-file", "world.npy"), "world_file must not be given for the world 'bernoulli'"),
    ],
)
def test_a_mistake_in_the_flags_is_refused_in_one_line(call, tmp_path, command, flags, message):
    code, out, err = call(*command, *flags)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(message, err)
    assert not (tmp_path / "run").exists()


def test_a_simulation_has_no_deadline_and_refuses_seconds(call, tmp_path):
    np.save("world.npy", np.ones((12, 8)) * 0.5)
    code, _, err = call(*SIMULATE, *RECORDED)
    assert code == 2
    assert "world_file must say who answers (0 or 1) in a simulation" in err
    assert not (tmp_path / "run").exists()


def test_recorded_answers_are_timed_as_bernoulli_answers_are(call, tmp_path):
    rates = ("--rates", "1")
    np.save("world.npy", np.ones((6, 8), dtype=bool))
    assert call(*COMPARE, *rates, "--jitter", "0.3", "--out", "drawn")[0] == 0
    assert call(*COMPARE, "--jitter", "0.3", *RECORDED, "--out", "recorded")[0] == 0
    drawn = load_comparison(tmp_path / "drawn").records
    recorded = load_comparison(tmp_path / "recorded").records
    # Recorded clients have no classes by rates: theirs are by how often they are in time.
    assert drawn.pop("class_accuracy").shape[-1] == 1
    assert recorded.pop("class_accuracy").shape[-1] > 1
    assert drawn.keys() == recorded.keys()
    for name, values in drawn.items():
        np.testing.assert_array_equal(recorded[name], values)


def test_recorded_seconds_are_compared_with_the_deadline(call, tmp_path):
    seconds = np.random.default_rng(1).random((6, 8)) * 10
    seconds[:, 3] = np.inf
    np.save("world.npy", seconds)
    assert call(*COMPARE, *RECORDED, "--deadline", "5", "--out", "run")[0] == 0
    records = load_comparison(tmp_path / "run").records
    spent = np.stack([seconds[round, records["clients"][round]] for round in range(6)])
    assert np.array_equal(records["arrived"], spent <= 5)
    assert np.array_equal(records["seconds"], np.minimum(spent, 5).max(axis=-1))


def test_a_comparison_in_a_recorded_world_that_is_resumed_equals_one_that_was_not(
    call, tmp_path, monkeypatch
):
    np.save("world.npy", answers())
    assert call(*COMPARE, *RECORDED, "--out", "whole")[0] == 0
    save = run_folder.save_records

    def interrupted(folder, first_round, records):
        if first_round == 2:
            raise KeyboardInterrupt
        save(folder, first_round, records)

    monkeypatch.setattr(run_folder, "save_records", interrupted)
    assert call(*COMPARE, *RECORDED, "--out", "run")[0] == 130
    monkeypatch.setattr(run_folder, "save_records", save)
    assert call("compare", "--out", "run", "--resume")[0] == 0
    assert same_records(tmp_path / "run", tmp_path / "whole")
    config = load_comparison(tmp_path / "run").config
    assert (config.world, config.world_file) == ("recorded", "world.npy")


def test_a_comparison_does_not_go_on_in_a_world_that_has_changed(call, tmp_path, monkeypatch):
    np.save("world.npy", answers())

    def interrupted(folder, first_round, records):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "save_records", interrupted)
        assert call(*COMPARE, *RECORDED, "--out", "run")[0] == 130
    np.save("world.npy", ~answers())
    code, _, err = call("compare", "--out", "run", "--resume")
    assert code == 2
    assert "world_file must be what the run in run was begun with, got other rounds" in err


@pytest.mark.parametrize("command", [SIMULATE, (*COMPARE, "--out", "run")])
def test_a_finished_run_is_not_shown_for_a_world_that_has_changed(call, tmp_path, command):
    np.save("world.npy", answers())
    assert call(*command, *RECORDED)[0] == 0
    np.save("world.npy", ~answers())
    code, out, err = call(*command, *RECORDED)
    assert (code, out) == (2, "")
    assert "world_file must be what the run in run was begun with, got other rounds" in err
    assert call(*command, *RECORDED, "--overwrite")[0] == 0
    assert call(*command, *RECORDED)[0] == 0
    assert call(*command, "--overwrite")[0] == 0
    assert not (tmp_path / "run" / "world.sha256").exists()  # The world is not recorded any more.


def test_a_simulation_of_an_older_version_is_shown_without_the_digest_of_its_world(call, tmp_path):
    np.save("world.npy", answers())
    _, first, _ = call(*SIMULATE, *RECORDED)
    (tmp_path / "run" / "world.sha256").unlink()
    np.save("world.npy", ~answers())
    assert call(*SIMULATE, *RECORDED) == (0, first, "")


@pytest.mark.parametrize("stop_at", [1, None])
def test_parts_of_a_reproduction_are_refused_if_their_world_has_changed(tmp_path, stop_at):
    np.save("world.npy", answers())
    config = ComparisonConfig(
        selectors=("random",),
        partitions=("iid",),
        aggregations=("paper",),
        seeds=1,
        clients=8,
        cohort=3,
        rounds=2,
        mode="one-by-one",
        world="recorded",
        world_file="world.npy",
    )
    Training(tmp_path, stop_at=stop_at).complete([config])
    np.save("world.npy", ~answers())
    with pytest.raises(ValueError, match=r"world_file must be .*, got other rounds"):
        Training(tmp_path).complete([config])
    (tmp_path / "world.npy").rename("other.npy")
    Training(tmp_path).complete([replace(config, world_file="other.npy")])  # a part of its own


def test_the_default_world_leaves_settings_and_identity_as_they_were(call, tmp_path):
    assert call(*COMPARE, "--out", "run")[0] == 0
    assert "world" not in run_folder.read_settings(tmp_path / "run")
    config = ComparisonConfig()
    assert "world" not in identity(config)
    named = replace(config, world="bernoulli")
    assert part_folder(named, tmp_path).name == "digits-k7-paper-normalised-T120-95fcc7f3"
    recorded = replace(config, world="recorded", world_file="world.npy")
    assert identity(recorded) != identity(config)
    assert "world" not in SimulationConfig().as_dict()


def test_settings_of_a_recorded_world_come_back():
    recorded = {"world": "recorded", "world_file": "world.npy"}
    for kind in (ComparisonConfig, SimulationConfig):
        config = kind(**recorded)
        assert kind.from_dict(config.as_dict()) == config
        assert recorded.items() <= config.as_dict().items()


def test_a_recorded_world_may_have_fewer_clients_than_there_are_classes(call, tmp_path):
    np.save("world.npy", answers(clients=3))
    few = ("--clients", "3", "--cohort", "2")
    assert call(*SIMULATE, *few, *RECORDED)[0] == 0
    assert load_simulation(tmp_path / "run").results["random"].counts.shape == (2, 3)


MARKOV = (
    "--rates",
    "0.1,0.3",
    "--world",
    "markov",
    "--world-option",
    "cycle=10",
    "--knows-offline",
)


@pytest.mark.parametrize("command", [SIMULATE, (*COMPARE, "--out", "run")])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--world-option", "cycle=5"), "world 'bernoulli' must get no option, .* got cycle"),
        (("--world", "markov", "--world-option", "sycle=5"), "did you mean 'cycle'"),
        (("--world", "markov", "--world-option", "cycle"), "world_options must be name=number"),
        (("--world", "markov", "--world-option", "cycle=5"), "option cycle must be at least 10"),
        (("--world", "markov", "--world-options", "on=30,off=30"), "must have one of cycle, on"),
        (("--world", "groups", "--world-option", "groups=9"), "option groups must be at most 8"),
        (("--world", "swap", "--knows-offline"), "knows_offline must be false in the world 'swap'"),
        (("--knows-offline",), "knows_offline must be false in the world 'bernoulli'"),
        (("--world", "markov", "--world-file", "world.npy"), "world_file must not be given"),
    ],
)
def test_a_wrong_option_of_a_world_is_refused_in_one_line(call, tmp_path, command, flags, message):
    code, out, err = call(*command, *flags)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(message, err)
    assert not (tmp_path / "run").exists()


def test_a_simulation_has_no_labels_and_says_so(call, tmp_path):
    code, out, err = call(*SIMULATE, "--world", "labels")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "world 'labels' must know the labels that clients own, got none; `compare`" in err


def test_options_of_a_world_may_be_repeated_or_listed(call, tmp_path):
    flags = ("--world", "markov", "--rates", "0.5")
    two = ("--world-option", "cycle=8", "--world-option", "failure=0.25")
    assert call(*SIMULATE, *flags, *two)[0] == 0
    config = load_simulation(tmp_path / "run").config
    assert config.world_options == ("cycle=8", "failure=0.25")
    assert call(*COMPARE, *flags, "--world-options", "failure=0.25,cycle=8", "--out", "two")[0] == 0
    assert load_comparison(tmp_path / "two").config.world_options == config.world_options


@pytest.mark.parametrize(
    "world", ["labels", "groups", "swap", "drift", "cyclic", "diurnal", "devices"]
)
def test_a_comparison_plays_every_world(call, tmp_path, page_words, world):
    assert call(*COMPARE, "--world", world, "--out", "run")[0] == 0
    comparison = load_comparison(tmp_path / "run")
    assert comparison.rounds_done == 6
    assert f"(world {world})" in page_words(tmp_path / "run/report.html")


def test_a_comparison_that_knows_who_is_offline_goes_on_where_it_was_killed(
    call, tmp_path, monkeypatch
):
    assert call(*COMPARE, *MARKOV, "--out", "whole")[0] == 0
    assert (load_comparison(tmp_path / "whole").records["clients"] == -1).any()
    save = run_folder.save_records

    def interrupted(folder, first_round, records):
        if first_round == 4:
            raise KeyboardInterrupt
        save(folder, first_round, records)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "save_records", interrupted)
        assert call(*COMPARE, *MARKOV, "--out", "run")[0] == 130
    assert call("compare", "--out", "run", "--resume")[0] == 0
    assert same_records(tmp_path / "run", tmp_path / "whole")
    assert call("report", "run")[0] == 0


TRACE = "client,on,off\n0,0,600\n1,30,400\n2,0,100\n3,200,330\n4,0,600\n5,10,590\n7,120,300\n"


def test_a_comparison_plays_an_availability_trace_and_knows_who_is_offline(call, tmp_path):
    (tmp_path / "trace.csv").write_text(TRACE)
    flags = ("--world", "trace", "--world-file", "trace.csv", "--world-option", "round_seconds=100")
    assert call(*COMPARE, *flags, "--knows-offline", "--cohort", "5", "--out", "trained")[0] == 0
    records = load_comparison(tmp_path / "trained").records
    # Online when the rounds begin, every 100 s, and still when they end:
    online = [{0, 2, 4}, {0, 1, 4, 5}, {0, 1, 3, 4, 5, 7}, {0, 1, 3, 4, 5}, {0, 4, 5}, {0, 4, 5}]
    stays = [{0, 2, 4}, {0, 1, 4, 5}, {0, 1, 3, 4, 5, 7}, {0, 1, 4, 5}, {0, 4, 5}, {0, 4}]
    for round, (present, faithful) in enumerate(zip(online, stays, strict=True)):
        for run in range(2):
            clients = records["clients"][round, run]
            asked = set(clients[clients != -1].tolist())
            assert asked <= present
            assert len(asked) == min(5, len(present))
            arrived = set(clients[records["arrived"][round, run]].tolist())
            assert arrived == asked & faithful

    with (tmp_path / "trace.csv").open("a") as file:
        file.write("8,0,10\n")
    code, _, err = call(*SIMULATE, *flags)
    assert (code, err.count("\n")) == (2, 1)
    assert (
        "trace.csv, line 9, column 1 (client): must be a whole number from 0 to 7, got '8'" in err
    )


def test_devices_that_are_too_slow_for_the_deadline_fail(call, tmp_path):
    assert call(*COMPARE, "--world", "devices", "--deadline", "0.5", "--out", "trained")[0] == 0
    records = load_comparison(tmp_path / "trained").records
    assert 0 < records["arrived"].mean() < 1
    is_late = ~records["arrived"].all(axis=-1)
    assert (records["seconds"][is_late] == 0.5).all()
    assert (records["seconds"][~is_late] < 0.5).all()
    # Without jitter a client is always in time, or never.
    for client in range(8):
        outcomes = records["arrived"][records["clients"] == client]
        assert len(set(outcomes.tolist())) <= 1

    code, out, err = call(*SIMULATE, "--world", "devices")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "world 'devices' must know the samples, epochs and model of the clients" in err


NEEDS_LABELS = """
import numpy as np
from fedcohort import stream
from fedcohort.world.options import MissingData
from fedcohort.world.base import World

def first_label(conditions):
    if conditions.label_counts is None:
        raise MissingData("my world must know the labels, got none")
    rates = (conditions.label_counts.argmax(axis=-1) == 0) * 1.0
    rows = (rates > 0 for _ in range(1000))
    return World(rows, success_rates=rates)
"""


def test_a_world_of_ones_own_may_need_the_labels(call, tmp_path):
    (tmp_path / "mine.py").write_text(NEEDS_LABELS)
    flags = ("--world", "mine.py:first_label", "--partitions", "primary-label")
    assert call(*COMPARE, *flags, "--out", "trained")[0] == 0
    assert load_comparison(tmp_path / "trained").rounds_done == 6
    code, _, err = call(*SIMULATE, "--world", "mine.py:first_label")
    assert (code, err.count("\n")) == (2, 1)
    assert "my world must know the labels, got none" in err


def test_the_list_names_every_world(call):
    _, out, _ = call("list")
    in_one_line = " ".join(out.split())  # long lists are wrapped
    assert f"worlds: {', '.join(WORLDS)} data sets: " in in_one_line
