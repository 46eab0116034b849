"""Folders that hold something else than a command writes or reads."""

import shutil
from pathlib import Path

import pytest

from fedcohort.reports import figures

FOLDERS = Path(__file__).parents[1] / "compatibility" / "folders"
SMALL = ("--clients=8", "--cohort=3", "--seeds=2", "--rounds=5")
PLAYED = ("simulate", "--selectors=random", *SMALL)
TRAINED = (
    "compare",
    "--selectors=random",
    "--partitions=iid",
    "--aggregations=paper",
    "--mode=one-by-one",
    *SMALL,
)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Spare the time that figures take."""
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)


@pytest.fixture
def advice(tmp_path):
    """Return a folder of `advise`."""
    folder = tmp_path / "advice"
    folder.mkdir()
    for name in ("advice.json", "strategy.py", "report.html"):
        (folder / name).write_text("{}\n")
    (folder / "settings.toml").write_text('rounds = 3\nselectors = ["random"]\n')
    return folder


def refused(result):
    """Return the message of a command that was refused in one line."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", [PLAYED, TRAINED])
def test_a_folder_with_files_of_ones_own_is_refused_and_left_alone(fedcohort, tmp_path, command):
    own = tmp_path / "mine"
    own.mkdir()
    for name in ("summary.csv", "report.html"):
        (own / name).write_text("my own\n")
    before = contents(own)
    message = "out must be a new or empty folder, got mine; choose another or add --overwrite"
    assert message in refused(fedcohort(*command, "--out=mine"))
    assert contents(own) == before
    assert fedcohort(*command, "--out=mine", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        PLAYED,
        (*PLAYED, "--overwrite"),
        TRAINED,
        (*TRAINED, "--overwrite"),
        (*TRAINED, "--devices=cpu,cpu"),
        ("compare", "--resume"),
        ("reproduce", "table3"),
    ],
)
def test_no_run_is_written_to_a_folder_of_advice(fedcohort, advice, command):
    before = contents(advice)
    message = (
        "out must not hold advice, got advice; to train with its settings: "
        "compare --config advice/settings.toml --out ANOTHER"
    )
    assert message in refused(fedcohort(*command, "--out=advice"))
    assert contents(advice) == before


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("simulate", "a simulation"),
        ("flower-unfinished", "a Flower run"),
        ("reproduce", "a reproduction"),
    ],
)
@pytest.mark.parametrize(
    "flags",
    [
        TRAINED,
        (*TRAINED, "--overwrite"),
        (*TRAINED, "--devices=cpu,cpu", "--overwrite"),
        ("compare", "--resume", "--from-previous"),
    ],
)
def test_no_comparison_replaces_a_run_of_another_kind(fedcohort, tmp_path, kind, words, flags):
    shutil.copytree(FOLDERS / kind, tmp_path / "run")
    before = contents(tmp_path / "run")
    message = f"out must not hold {words}, got run; choose another\n"
    assert refused(fedcohort(*flags, "--out=run")).endswith(message)
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("report", "advice"), "runs"),
        (("watch", "advice"), "run"),
        (("reproduce", "table3", "--from", "advice"), "from"),
        (("reproduce", "table3", "--from", "advice", "--out", "other"), "from"),
    ],
)
def test_advice_is_not_read_as_a_run(fedcohort, advice, command, name):
    message = f"{name} must be a run, got advice in advice; give the run that the advice was made"
    assert message in refused(fedcohort(*command))


def test_a_run_in_a_folder_with_advice_is_a_run(fedcohort, advice):
    shutil.copytree(FOLDERS / "compare", advice, dirs_exist_ok=True)
    assert fedcohort("report", "advice")[0] == 0


def test_results_beside_advice_are_shown_without_it(fedcohort, advice, tmp_path):
    shutil.copytree(FOLDERS / "compare", tmp_path / "home" / "part")
    shutil.move(advice, tmp_path / "home" / "advice")
    assert fedcohort("reproduce", "table3", "--from", "home")[0] == 0


@pytest.mark.parametrize("command", [("report", "run"), ("watch", "run")])
def test_shards_that_are_not_merged_are_no_damaged_run(fedcohort, tmp_path, command):
    shutil.copytree(FOLDERS / "compare-unfinished", tmp_path / "run" / "shards" / "1-of-2")
    message = "whose shards are finished and merged, got run; if it was stopped, repeat its command"
    assert message in refused(fedcohort(*command))


@pytest.mark.parametrize("kind", ["compare", "simulate", "flower"])
@pytest.mark.parametrize("flags", [("--from", "run"), ("--from", "results", "--out", "run")])
def test_reports_of_the_paper_do_not_replace_the_page_of_a_run(fedcohort, tmp_path, kind, flags):
    shutil.copytree(FOLDERS / kind, tmp_path / "run")
    shutil.copytree(FOLDERS / "export", tmp_path / "results")
    (tmp_path / "run" / "report.html").write_text("its own page\n")
    before = contents(tmp_path / "run")
    message = "out must not hold a run of compare, simulate or Flower, got run; choose another"
    assert message in refused(fedcohort("reproduce", "table3", *flags))
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize("kind", ["reproduce", "export"])
def test_reports_go_to_the_folder_of_a_reproduction_that_is_shown(fedcohort, tmp_path, kind):
    shutil.copytree(FOLDERS / kind, tmp_path / "run")
    assert fedcohort("reproduce", "table3", "--from", "run")[0] == 0
    assert (tmp_path / "run" / "report.html").exists()


def test_a_run_of_compare_can_be_shown_in_another_folder(fedcohort, tmp_path):
    shutil.copytree(FOLDERS / "compare", tmp_path / "run")
    assert fedcohort("reproduce", "table3", "--from", "run", "--out", "other")[0] == 0


def test_reports_of_an_artefact_leave_room_for_its_simulation(fedcohort, tmp_path):
    shutil.copytree(FOLDERS / "export", tmp_path / "results")
    shown = ("reproduce", "figure3", "--from", "results", "--out", "run")
    assert fedcohort(*shown)[0] == 0
    assert fedcohort("reproduce", "figure3", "--seeds=1", "--rounds=5", "--out", "run")[0] == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("simulate", "--world=recorded"), "--world-file"),
        (("simulate", "--world=cyclic", "--world-option=cycle=0"), "cycle must be"),
        (("simulate", "--world-option=cycle=3"), "cycle"),
        (("compare", "--world=recorded"), "--world-file"),
        (("compare", "--aggregations=inverse", "--selectors=pow-d"), "with the selector 'pow-d'"),
        (("compare", "--selectors=gone.py:Mine"), "gone.py"),
    ],
)
def test_a_mistake_in_the_settings_is_named_before_one_in_the_folder(
    fedcohort, tmp_path, flags, words
):
    shutil.copytree(FOLDERS / flags[0], tmp_path / "run")
    message = refused(fedcohort(*flags, "--out=run"))
    assert words in message
    assert "out must" not in message


def test_a_finished_simulation_is_shown_although_its_recorded_world_is_gone(fedcohort, tmp_path):
    world = tmp_path / "world.csv"
    world.write_text("1,0,1\n" * 5)
    flags = ("--clients=3", "--cohort=2", "--rounds=5", "--seeds=1", "--selectors=random")
    recorded = ("simulate", "--world=recorded", "--world-file=world.csv", *flags, "--out=run")
    assert fedcohort(*recorded)[0] == 0
    world.unlink()
    assert fedcohort(*recorded)[0] == 0


def test_other_results_are_named_by_the_first_setting_that_differs(fedcohort):
    assert fedcohort(*PLAYED, "--out=run")[0] == 0
    message = "other settings, got run with rounds 5, not 7; choose another or add --overwrite"
    assert message in refused(fedcohort(*PLAYED, "--rounds=7", "--out=run"))


def test_a_run_of_other_settings_is_named_by_the_first_that_differs(fedcohort):
    assert fedcohort(*TRAINED, "--out=run")[0] == 0
    other = (*TRAINED, "--selectors=random,fedcs", "--rounds=7", "--out=run")
    message = "got run with selectors random, not random,fedcs; choose another or add --overwrite"
    assert message in refused(fedcohort(*other))
    message = "selectors must be random as in run to resume it, got random,fedcs; leave all"
    assert message in refused(fedcohort(*other, "--resume"))


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_run_says_that_there_was_nothing_to_resume(fedcohort, tmp_path, exists):
    if exists:
        (tmp_path / "typo").mkdir()
    code, out, _ = fedcohort(*TRAINED, "--out=typo", "--resume")
    assert code == 0
    assert out.startswith("Nothing to resume in typo: a new run starts.\n")
    code, out, _ = fedcohort(*TRAINED, "--out=typo", "--resume")
    assert code == 0
    assert "Nothing to resume" not in out


def test_a_run_is_resumed_or_replaced_but_not_both(fedcohort):
    message = "overwrite must be given without resume, got both"
    assert message in refused(fedcohort(*TRAINED, "--out=run", "--resume", "--overwrite"))
