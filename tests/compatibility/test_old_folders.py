"""Folders that version 0.1.0 wrote before its code was reorganised still open, and go on.

`folders/` holds one small folder of each kind, without pictures and pages:

    compare, compare-unfinished   digits, two selectors, 6 rounds; the second stopped after 3
    simulate                      two selectors, 12 clients, 30 rounds, 2 seeds
    reproduce, export             figure3, figure4, regret and table3 on the digits, 4 rounds
    flower, flower-unfinished     a Flower run of 4 rounds; the second stopped after 2
"""

import csv
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from fedcohort import cli

FOLDERS = Path(__file__).parent / "folders"
REPRODUCED = (
    "figure3", "figure4", "regret", "table3", "--dataset", "digits", "--rounds", "4",
    "--seeds", "1", "--selectors", "random,fedcs", "--partitions", "iid", "--mus", "0",
)  # fmt: skip
SIMULATED = ("--selectors", "e3cs-0.5,random", "--clients", "12", "--cohort", "3", "--rounds", "30")


@pytest.fixture
def folder(tmp_path):
    """Return a function that copies an old folder to a place where it may be changed."""

    def copy(name):
        return Path(shutil.copytree(FOLDERS / name, tmp_path / name))

    return copy


@pytest.fixture
def fedcohort(monkeypatch, capsys):
    """Return a function that runs a command, requires that it succeeds and returns its output."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["fedcohort", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        output, errors = capsys.readouterr()
        assert stop.value.code == 0, errors
        return output

    return run


# Columns that tables gained or lost since; all others keep their cells.
CHANGED_COLUMNS = (
    "reading",
    "worlds",
    "paper outside mean ± 2 sd",
    "paper outside 95 % prediction interval",
)


def table(path):
    """Return the rows of a table, without the columns that changed."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for name in CHANGED_COLUMNS:
            row.pop(name, None)
    return rows


def load_chunks(folder):
    """Return the arrays of all record chunks, by chunk and name."""
    chunks = {}
    for path in sorted((folder / "records").glob("*.npz")):
        with np.load(path) as arrays:
            chunks[path.name] = {name: arrays[name] for name in arrays if name != "first_round"}
    return chunks


def text(path):
    return path.read_bytes().decode()


PAGES = ("compare", "compare-unfinished", "simulate", "reproduce", "flower")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_written(folder, fedcohort, name):
    path = folder(name)
    assert "Report" in fedcohort("report", path)
    text = (path / "report.html").read_text()
    assert text.index('class="answer"') < text.index("<figure")


@pytest.mark.parametrize("name", ["compare", "compare-unfinished", "flower", "flower-unfinished"])
def test_a_run_can_be_watched(folder, fedcohort, name):
    done, rounds = {"compare": (6, 6), "compare-unfinished": (3, 6)}.get(name, (4, 4))
    if name == "flower-unfinished":
        done, rounds = 2, 2
    assert f"round {done} of {rounds}" in fedcohort("watch", folder(name), "--once")


def test_a_finished_comparison_is_shown_and_not_trained_again(folder, fedcohort):
    path = folder("compare")
    before = load_chunks(path)
    summary = text(path / "summary.csv")
    (path / "summary.csv").unlink()
    fedcohort("compare", "--out", path, "--resume")
    assert text(path / "summary.csv") == summary
    np.testing.assert_equal(load_chunks(path), before)


def test_an_unfinished_comparison_goes_on_and_ends_as_the_old_version_did(folder, fedcohort):
    path = folder("compare-unfinished")
    fedcohort("compare", "--out", path, "--resume")
    old = load_chunks(FOLDERS / "compare")
    new = load_chunks(path)
    assert list(new) == list(old)
    for chunk, arrays in old.items():
        assert new[chunk].keys() == arrays.keys()
        for name, values in arrays.items():
            if name in ("accuracy", "loss"):  # another processor rounds differently
                np.testing.assert_allclose(new[chunk][name], values, rtol=1e-3)
            else:
                np.testing.assert_array_equal(new[chunk][name], values)


def test_a_simulation_is_shown_and_not_played_again(folder, fedcohort):
    path = folder("simulate")
    played = (path / "results.npz").read_bytes()
    summary = text(path / "summary.csv")
    (path / "summary.csv").unlink()
    fedcohort("simulate", *SIMULATED, "--seeds", "2", "--out", path)
    assert text(path / "summary.csv") == summary
    assert (path / "results.npz").read_bytes() == played


def test_a_reproduction_is_shown_and_neither_trained_nor_played_again(folder, fedcohort):
    path = folder("reproduce")
    tables = {name: table(path / name) for name in ("table3/table3.csv", "regret/summary.csv")}
    results = {file: file.stat().st_mtime_ns for file in path.rglob("*.npz")}
    for name in tables:
        (path / name).unlink()
    fedcohort("reproduce", *REPRODUCED, "--out", path)
    assert {name: table(path / name) for name in tables} == tables
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*.npz")} == results


def test_exported_results_give_the_same_tables(folder, fedcohort, tmp_path):
    source, out = folder("export"), tmp_path / "shown"
    fedcohort("reproduce", *REPRODUCED, "--from", source, "--out", out)
    for name in ("table3/table3.csv", "regret/summary.csv"):
        assert table(out / name) == table(FOLDERS / "reproduce" / name)
    for name in ("figure3", "figure4"):
        old = FOLDERS / "reproduce" / name / "summary.csv"
        assert text(out / name / "summary.csv") == text(old)
