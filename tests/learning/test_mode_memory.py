"""Which mode is faster: the decision given the seconds, and its memory."""

import json
from pathlib import Path

import pytest
from torch import nn

from fedcohort.learning import engine as engines
from fedcohort.learning.mode_memory import describe_training, recall_mode, remember_mode
from fedcohort.learning.tuning import MARGIN, SMALL_STEP, is_clearly_faster, preferred_mode

from .small import make_engine


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOHORT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def training(**numbers):
    return describe_training(nn.Linear(3, 2), batch_size=4, **numbers)


DECISIONS = {
    "clearly faster": ([1, 1, 1, 1], True),
    "clearly slower": ([3, 3, 3, 3], False),
    "faster, but within the noise": ([1.9, 1.95, 1.85, 1.9], False),
    "one turn was disturbed": ([1, 1, 50, 1], True),
    "two of four turns were not faster": ([1, 1, 2, 2], False),
    "exactly the margin": ([2 * (1 - MARGIN)] * 4, False),
    "a single turn": ([1], True),
}


@pytest.mark.parametrize(("seconds", "faster"), DECISIONS.values(), ids=DECISIONS)
def test_noise_does_not_decide(seconds, faster):
    reference = [2.0] * len(seconds)
    assert is_clearly_faster(seconds, reference) == faster
    slower = [[7 * value for value in turns] for turns in (seconds, reference)]
    assert is_clearly_faster(*slower) == faster


def test_within_the_noise_small_models_train_together_and_large_ones_one_by_one():
    assert preferred_mode(SMALL_STEP - 1) == "together"
    assert preferred_mode(SMALL_STEP) == "one-by-one"


def test_a_decision_is_remembered_for_its_training_only(folder):
    assert recall_mode(training()) is None
    remember_mode(training(), "together")
    assert recall_mode(training()) == "together"
    assert recall_mode(training(slots=3)) is None
    other = describe_training(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), batch_size=4)
    assert recall_mode(other) is None
    remember_mode(training(), "one-by-one")
    assert recall_mode(training()) == "one-by-one"
    assert len(list(folder.iterdir())) == 1


def damage(path):
    path.write_text(path.read_text().replace("together", "togetheR"))


def truncate(path):
    path.write_text(path.read_text()[:30])


def foreign(path):
    path.write_text("[1, 2]")


def unknown_mode(path):
    table = json.loads(path.read_text())
    remember_mode(table["training"], "faster")


@pytest.mark.parametrize("spoil", [damage, truncate, foreign, unknown_mode])
def test_a_file_that_is_damaged_or_not_ours_counts_as_no_decision_and_is_replaced(folder, spoil):
    remember_mode(training(), "together")
    (path,) = folder.iterdir()
    spoil(path)
    assert recall_mode(training()) is None
    remember_mode(training(), "together")
    assert recall_mode(training()) == "together"


def test_a_folder_that_cannot_be_written_to_is_not_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDCOHORT_CACHE", str(tmp_path / "file"))
    remember_mode(training(), "together")
    assert recall_mode(training()) is None


def test_the_folder_follows_the_standard(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDCOHORT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    remember_mode(training(), "together")
    assert len(list((tmp_path / "xdg/fedcohort").iterdir())) == 1

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    remember_mode(training(), "together")
    assert len(list((tmp_path / "home/.cache/fedcohort").iterdir())) == 1


def test_off_remembers_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOHORT_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    remember_mode(training(), "together")
    assert recall_mode(training()) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["together", "one-by-one"])
def test_an_engine_measures_once_and_then_remembers(folder, monkeypatch, mode):
    measured = []

    def measure(*args):
        measured.append(args)
        return mode

    monkeypatch.setattr(engines, "fastest_mode", measure)
    assert [make_engine("auto").mode for _ in range(3)] == [mode] * 3
    assert len(measured) == 1
    monkeypatch.setenv("FEDCOHORT_CACHE", "off")
    assert make_engine("auto").mode == mode
    assert len(measured) == 2
