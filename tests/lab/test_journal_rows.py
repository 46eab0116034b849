"""Which lines a journal may hold, and what becomes of the others."""

import json

import pytest

from fedcohort.lab import folder as run_folder
from fedcohort.lab.folder.flower import trim_journal

ASKED = {"client": "a", "status": "arrived"}


def row(number, **changes):
    values = {"round": number, "seconds": 1.0, "asked": [ASKED], "arrived": 1}
    values |= {"success_ratio": 0.5, "probabilities": {"a": 0.5}}
    return values | changes


def write(folder, *rows):
    lines = [f"{json.dumps(one)}\n" for one in rows]
    (folder / "rounds.jsonl").write_text("".join(lines))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"asked": [ASKED, {"client": "b"}]}, "asked in line 2 .* must name clients"),
        ({"asked": [ASKED, "b"]}, "asked in line 2 .* must name clients"),
        ({"asked": "a"}, "asked in line 2 .* must name clients"),
        ({"arrived": -1}, "arrived in line 2 .* must be a whole number at least 0, got -1"),
        ({"seconds": -0.5}, "seconds in line 2"),
        ({"success_ratio": None}, "success_ratio in line 2"),
        ({"probabilities": [0.5]}, "probabilities in line 2 .* must be a table"),
        ({"probabilities": {"a": 1.5}}, "probability of a in line 2"),
        ({"round": 1}, "round in line 2 .* must be a whole number at least 2, got 1"),
    ],
)
def test_a_row_that_no_run_writes_is_refused_by_line_and_field(tmp_path, changes, message):
    write(tmp_path, row(1), row(2) | changes, row(3))
    with pytest.raises(ValueError, match=message):
        run_folder.load_journal(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [{"asked": []}, {"arrived": 0}, {"seconds": 0}, {"probabilities": None}, {"round": 7}],
)
def test_rows_at_the_bounds_are_read(tmp_path, changes):
    write(tmp_path, row(1), row(2) | changes)
    assert run_folder.load_journal(tmp_path)[1] == row(2) | changes


def test_a_repaired_journal_keeps_the_readable_rounds_that_are_done_in_order(tmp_path):
    write(tmp_path, row(3), row(1), row(2) | {"arrived": -1}, row(4))
    before = (tmp_path / "rounds.jsonl").read_bytes()
    with pytest.raises(ValueError, match="from_previous=True sets the journal aside"):
        trim_journal(tmp_path, 3, repair=False)
    assert (tmp_path / "rounds.jsonl").read_bytes() == before
    aside = trim_journal(tmp_path, 3, repair=True)
    assert aside.read_bytes() == before
    assert [one["round"] for one in run_folder.load_journal(tmp_path)] == [1, 3]


def test_a_sound_journal_is_cut_after_the_rounds_that_are_done(tmp_path):
    write(tmp_path, row(1), row(2), row(3))
    assert trim_journal(tmp_path, 2, repair=True) is None
    assert [one["round"] for one in run_folder.load_journal(tmp_path)] == [1, 2]
    with pytest.raises(ValueError, match="must hold rounds 1 to 3, got 2 of them"):
        trim_journal(tmp_path, 3, repair=False)


def test_the_line_of_an_unfinished_round_does_not_fill_a_gap(tmp_path):
    """Three lines, but only rounds 1 and 3 are done: the line of round 4 would come twice."""
    write(tmp_path, row(1), row(3), row(4))
    with pytest.raises(ValueError, match="must hold rounds 1 to 3, got 2 of them"):
        trim_journal(tmp_path, 3, repair=False)
    trim_journal(tmp_path, 3, repair=True)
    assert [one["round"] for one in run_folder.load_journal(tmp_path)] == [1, 3]
