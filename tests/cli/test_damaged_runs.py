"""Damaged and lost files of `compare`, `simulate` and `reproduce`: named, never begun anew."""

import shutil

import numpy as np
import pytest

from fedcohort.files import load_arrays, save_arrays
from fedcohort.lab import folder as run_folder

COMPARED = (
    "compare", "--clients", "8", "--cohort", "2", "--samples-per-client", "30", "--seeds", "1",
    "--selectors", "e3cs-0.5,random", "--partitions", "iid", "--aggregations", "paper",
    "--rounds", "6", "--checkpoint-every", "2", "--mode", "one-by-one",
)  # fmt: skip
SIMULATED = (
    "simulate", "--selectors", "e3cs-0.5,random", "--clients", "12", "--cohort", "3",
    "--rounds", "20", "--seeds", "2",
)  # fmt: skip
REPRODUCED = (
    "reproduce", "table3", "--dataset", "digits", "--rounds", "2", "--seeds", "1",
    "--selectors", "random", "--partitions", "iid", "--mus", "0",
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Hold folders of finished runs, by command; each is computed once."""
    return tmp_path_factory.mktemp("finished")


@pytest.fixture
def folder(fedcohort, finished, tmp_path):
    """Return a function that gives a copy of a finished run of a command."""

    def copy(args):
        whole = finished / args[0]
        if not whole.exists():
            assert fedcohort(*args, "--out", whole)[0] == 0
        return shutil.copytree(whole, tmp_path / args[0])

    return copy


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 8
    path.write_bytes(content)


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def assert_refused(outcome, *words):
    """One line of error, no traceback, with these words."""
    code, _, errors = outcome
    assert code == 2, errors
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    for word in words:
        assert word in errors


def assert_same_run(folder, whole):
    """Records and the last checkpoint must be the same to the last bit."""
    np.testing.assert_equal(run_folder.load_records(folder, 6), run_folder.load_records(whole, 6))
    np.testing.assert_equal(run_folder.load_checkpoint(folder), run_folder.load_checkpoint(whole))


@pytest.mark.parametrize("damage", ["flipped", "cut", "lost"])
def test_a_comparison_goes_on_from_the_checkpoint_before_when_asked_to(
    fedcohort, folder, finished, damage
):
    run = folder(COMPARED)
    path = run / "checkpoint.safetensors"
    if damage == "flipped":
        flip(path)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        path.unlink()
    before = contents(run)
    outcome = fedcohort("compare", "--out", run, "--resume")
    assert_refused(outcome, "checkpoint.safetensors must be", "--from-previous", "after round 4")
    assert contents(run) == before

    assert fedcohort("compare", "--out", run, "--resume", "--from-previous")[0] == 0
    assert_same_run(run, finished / "compare")
    aside = run / "checkpoint.damaged-1.safetensors"
    assert aside.exists() == (damage != "lost")
    if damage != "lost":
        assert aside.read_bytes() == before["checkpoint.safetensors"]


def test_a_comparison_that_lost_both_checkpoints_does_not_begin_anew(fedcohort, folder):
    run = folder(COMPARED)
    for path in run.glob("checkpoint*"):
        path.unlink()
    before = contents(run)
    for flags in (["--resume"], ["--resume", "--from-previous"], []):
        outcome = fedcohort("compare", "--out", run, *flags)
        if flags:
            assert_refused(outcome, "checkpoint.safetensors must be there to go on")
        assert outcome[0] == 2
        assert contents(run) == before


def test_the_checkpoint_before_is_only_asked_for_with_resume(fedcohort, tmp_path):
    outcome = fedcohort("compare", "--out", tmp_path / "run", "--from-previous")
    assert_refused(outcome, "from_previous must be given with resume")


@pytest.mark.parametrize(
    "name",
    ["settings.toml", "records/0000002.npz", "owners.npz", "allocations/0000002.npz",
     "environment.json"],
)  # fmt: skip
def test_a_damaged_file_of_a_comparison_is_named(fedcohort, folder, name):
    run = folder(COMPARED)
    flip(run / name)
    assert_refused(fedcohort("report", run), name)


def test_records_are_checked_before_a_comparison_goes_on(fedcohort, folder):
    run = folder(COMPARED)
    flip(run / "records/0000002.npz")
    (run / "checkpoint.safetensors").unlink()
    before = (run / "records/0000004.npz").stat().st_mtime_ns
    outcome = fedcohort("compare", "--out", run, "--resume", "--from-previous")
    assert_refused(outcome, "0000002.npz must be")
    assert (run / "records/0000004.npz").stat().st_mtime_ns == before


@pytest.mark.parametrize("wrong", ["clients", "types", "partition", "axes"])
def test_a_foreign_table_of_owners_is_refused_by_name(fedcohort, folder, wrong):
    run = folder(COMPARED)
    counts = load_arrays(run / "owners.npz")["iid"]
    tables = {
        "clients": {"iid": counts[:-1]},
        "types": {"iid": counts.astype(np.float64)},
        "partition": {"shards": counts},
        "axes": {"iid": counts[0]},
    }
    save_arrays(run / "owners.npz", tables[wrong])
    assert_refused(fedcohort("report", run), "owners.npz")


@pytest.mark.parametrize("name", ["settings.json", "results.npz"])
def test_a_damaged_simulation_is_named_and_not_played_again(fedcohort, folder, name):
    run = folder(SIMULATED)
    flip(run / name)
    before = contents(run)
    assert_refused(fedcohort(*SIMULATED, "--out", run), f"{name} must be")
    assert_refused(fedcohort("report", run), f"{name} must be")
    assert contents(run) == before


@pytest.mark.slow
def test_a_part_of_a_reproduction_goes_on_from_the_checkpoint_before(fedcohort, folder):
    run = folder(REPRODUCED)
    (path,) = run.glob("runs/*/checkpoint.safetensors")
    flip(path)
    outcome = fedcohort(*REPRODUCED, "--out", run)
    assert_refused(outcome, f"{path} must be", "--from-previous")
    table = (run / "table3/table3.csv").read_bytes()
    assert fedcohort(*REPRODUCED, "--out", run, "--from-previous")[0] == 0
    assert (run / "table3/table3.csv").read_bytes() == table
    assert (path.parent / "checkpoint.damaged-1.safetensors").exists()


@pytest.mark.slow
def test_damaged_exported_results_are_named(fedcohort, folder, tmp_path):
    run = folder(REPRODUCED)
    target = tmp_path / "exported"
    shown = ("reproduce", *REPRODUCED[1:], "--from", run, "--out", tmp_path / "shown")
    assert fedcohort(*shown, "--export", target)[0] == 0
    path = target / "runs-digits.parquet"
    whole = path.read_bytes()
    for place in (0.1, 0.5, 0.9):
        path.write_bytes(whole)
        flip(path, place)
        again = ("reproduce", *REPRODUCED[1:], "--from", target, "--out", tmp_path / "again")
        assert_refused(fedcohort(*again), "runs-digits.parquet must be")
