"""A comparison begins, goes on or is refused, depending on what its folder holds."""

import os
from dataclasses import replace

import pytest

from fedcohort.files import atomic_write
from fedcohort.lab import comparison
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import load_comparison, run_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.sharding import run_shard
from fedcohort.lab.shards import Shard

CONFIG = ComparisonConfig(
    selectors=("random",),
    partitions=("iid",),
    aggregations=("paper",),
    seeds=1,
    clients=4,
    cohort=2,
    rounds=2,
    mode="one-by-one",
)


@pytest.mark.parametrize("exists", [False, True])
def test_a_run_that_begins_while_another_loads_its_data_is_refused(tmp_path, monkeypatch, exists):
    folder = tmp_path / "run"
    if exists:
        folder.mkdir()
    load = comparison.load

    def begin_another(*args, **options):
        monkeypatch.setattr(comparison, "load", load)
        with pytest.raises(ValueError, match="out must not be in use by another process"):
            run_comparison(replace(CONFIG, first_seed=100), folder)
        return load(*args, **options)

    monkeypatch.setattr(comparison, "load", begin_another)
    run_comparison(CONFIG, folder)
    assert load_comparison(folder).config == CONFIG


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(ValueError, match=r"missing\.npz"):
        run_comparison(replace(CONFIG, dataset=str(tmp_path / "missing.npz")), folder)
    assert not folder.exists()


def test_a_shard_that_cannot_begin_leaves_room_for_the_whole_run(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(ValueError, match=r"missing\.npz"):
        run_shard(replace(CONFIG, dataset=str(tmp_path / "missing.npz")), folder, Shard(1, 1))
    assert run_comparison(CONFIG, folder).rounds_done == CONFIG.rounds


def test_a_run_killed_between_its_first_two_files_is_resumed(tmp_path, monkeypatch):
    put_in_place = os.replace

    def kill_after_the_first_file(source, target):
        put_in_place(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", kill_after_the_first_file)
        with pytest.raises(KeyboardInterrupt):
            run_comparison(CONFIG, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["environment.json"]
    assert run_comparison(CONFIG, tmp_path, resume=True).rounds_done == CONFIG.rounds


def leave_draft(path):
    """Leave the draft of a file as a process does that is killed while it writes."""
    with atomic_write(path) as draft:
        draft.write_text("cut")
    path.rename(draft)


@pytest.mark.parametrize("place", [".", "shards/2-of-2"])
@pytest.mark.parametrize("last", ["environment.json", "settings.toml"])
def test_a_run_killed_while_it_writes_its_first_files_is_resumed(tmp_path, place, last):
    folder = tmp_path / place
    if last == "settings.toml":
        run_folder.write_environment(folder)
    leave_draft(folder / last)
    if place == ".":
        run_comparison(CONFIG, tmp_path, resume=True)
    else:
        run_shard(replace(CONFIG, seeds=2), tmp_path, Shard(2, 2), resume=True)
    assert load_comparison(folder).rounds_done == CONFIG.rounds
    assert not list(folder.glob(".*"))  # The next write of a file removes its old draft.


@pytest.mark.parametrize("name", ["notes.txt", ".notes.txt.12.txt", "shards/notes.txt", "shards"])
def test_files_that_no_killed_run_left_are_not_claimed(tmp_path, name):
    run_folder.write_environment(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(ValueError, match="out must be a new or empty folder"):
        run_comparison(CONFIG, tmp_path, resume=True)
    assert path.read_text() == "mine"


def test_results_of_a_discarded_run_do_not_stand_beside_the_unfinished_new_one(
    tmp_path, monkeypatch
):
    run_comparison(CONFIG, tmp_path)
    for name in ("summary.csv", "report.html", "notes.txt"):
        (tmp_path / name).write_text("of the old run")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "_train", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_comparison(CONFIG, tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["notes.txt"]
