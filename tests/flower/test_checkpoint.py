"""The checkpoint: what it holds and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fakes import federation, record
from helpers import INITIAL, ROUNDS, assert_alike, fails, play

from fedcohort.flower import checkpoint
from fedcohort.lab import folder as run_folder
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.random import Random

OLD_FOLDERS = Path(__file__).parents[1] / "compatibility/folders"


def test_a_folder_with_a_run_is_not_overwritten(clock, tmp_path):
    play(federation(clock, 6, fails), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    grid = federation(clock, 6, fails)
    with pytest.raises(
        ValueError,
        match=f"folder must not hold a run unless resume is true, got {tmp_path} after round 4",
    ):
        play(grid, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert grid.sent() == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (
            {"w": np.zeros((2, 3)), "b": np.zeros(1)},
            r"'w' is float64\[2, 3\] here and float64\[2, 2\] there",
        ),
        (
            {"w": np.zeros((2, 2), np.float32), "b": np.zeros(1)},
            r"'w' is float32\[2, 2\] here and float64\[2, 2\] there",
        ),
        ({"w": np.zeros((2, 2))}, r"'b' is absent here and float64\[1\] there"),
        ({**INITIAL, "c": np.zeros(())}, r"'c' is float64\[\] here and absent there"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(clock, tmp_path, other, told):
    play(federation(clock, 6, fails), tmp_path)
    with pytest.raises(
        ValueError, match=rf"must hold a checkpoint of this model, got another: {told}"
    ):
        play(federation(clock, 6, fails), tmp_path, resume=True, initial=record(**other))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (
            {"selector": "random"},
            "selector must be as in the rounds before, 'e3cs-0.5', to resume .*, got 'random'",
        ),
        (
            {"aggregation": "paper"},
            "aggregation must be as in the rounds before, 'wrapped', to resume .*, got 'paper'",
        ),
        (
            {"selector": "e3cs-0.8"},
            "selector must be as in the rounds before, 'e3cs-0.5', to resume .*, got 'e3cs-0.8'",
        ),
    ],
)
def test_a_run_does_not_go_on_as_another(clock, tmp_path, other, told):
    play(federation(clock, 6, fails), tmp_path)
    with pytest.raises(ValueError, match=told):
        play(federation(clock, 6, fails), tmp_path, resume=True, **other)


def test_a_refused_resume_leaves_what_the_run_says_of_itself(clock, tmp_path):
    play(federation(clock, 6, fails), tmp_path)
    logged = (tmp_path / "run.json").read_bytes()
    with pytest.raises(ValueError, match="selector must be as in the rounds before"):
        play(
            federation(clock, 6, fails), tmp_path, resume=True, selector="random", rounds=30, seed=9
        )
    assert (tmp_path / "run.json").read_bytes() == logged
    play(federation(clock, 6, fails), tmp_path, resume=True, rounds=2)  # fewer than were played
    assert json.loads((tmp_path / "run.json").read_text())["rounds"] == ROUNDS


def test_a_folder_that_another_server_writes_is_refused(clock, tmp_path):
    with (
        run_folder.locked(tmp_path),
        pytest.raises(ValueError, match="folder must not be in use by another process"),
    ):
        play(federation(clock, 4), tmp_path)


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "another file", "no state"])
def test_a_damaged_checkpoint_is_refused_by_name(clock, tmp_path, damage):
    from safetensors.numpy import save_file

    play(federation(clock, 6, fails), tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    whole = path.read_bytes()
    if damage in ("another file", "no state"):
        save_file(
            {"x": np.zeros(3)},
            str(path),
            metadata={"state": '{"round": 3}'} if damage == "another file" else None,
        )
    else:
        path.write_bytes({"empty": b"", "cut": whole[:-9], "noise": bytes(reversed(whole))}[damage])
    with pytest.raises(ValueError, match=f"{path} must be a checkpoint of fedcohort, got: "):
        play(federation(clock, 6, fails), tmp_path, resume=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"selector": Random(6, 3, rng=0)}, "state must be one of Random"),
        (
            {"selector": E3CS(6, 3, rng=0, update="robust")},
            "kind of the state must be E3CS robust, got E3CS paper",
        ),
        (
            {"selector": E3CS(6, 2, rng=0), "cohort_size": 2},
            "cohort_size of the state must be 2, got 3",
        ),
    ],
)
def test_a_state_of_another_selector_is_refused(clock, tmp_path, options, told):
    play(federation(clock, 6, fails), tmp_path, selector=E3CS(6, 3, rng=0))
    run_folder.save_checkpoint(
        tmp_path, run_folder.load_checkpoint(tmp_path) | {"about": {}}
    )  # as written before it named them
    with pytest.raises(ValueError, match=told):
        play(federation(clock, 6, fails), tmp_path, resume=True, rounds=6, **options)


def test_a_run_of_version_0_1_0_goes_on_and_ends_as_one_that_was_not_stopped(clock, tmp_path):
    """`tests/compatibility/folders` says how the old folder was made."""
    folder = tmp_path / "old"
    shutil.copytree(OLD_FOLDERS / "flower-unfinished", folder)
    continued = play(federation(clock, 6, fails), folder, resume=True)
    uninterrupted = play(federation(clock, 6, fails), tmp_path / "new")
    for row in (*continued[2], *uninterrupted[2]):
        row.pop("absent", None)  # version 0.1.0 did not record who was away
    assert_alike(continued, uninterrupted)


def test_models_of_every_kind_of_array_come_back(tmp_path):
    arrays = {
        "half": np.array([1.5], np.float16),
        "single": np.ones((2, 3), np.float32),
        "count": np.array(7),
        "flags": np.array([True, False]),
        "bytes": np.arange(5, dtype=np.uint8),
        "none": np.zeros((0, 3)),
        "a/b": np.ones(1),
        "": np.ones(2),
        "ü": np.ones(3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    state = {
        "round": 1,
        "model": arrays,
        "selector": {},
        "registry": {},
        "strategy": {},
        "totals": {},
    }
    checkpoint.save(tmp_path, state)
    back = checkpoint.load(tmp_path, True, arrays)["model"]
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array)
