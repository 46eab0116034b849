"""Journals as Flower runs write them: whole, cut, and with what should not be there."""

import json

import numpy as np
import pytest

pytest.importorskip("flwr", reason="journals are written by the code of a Flower run")

from fedcohort.advice.journals import read_journal
from fedcohort.advice.sources import read_log
from fedcohort.files import to_json_line
from fedcohort.flower.journal import Journal, Totals, round_row
from fedcohort.flower.verdicts import Verdict
from fedcohort.lab import folder as run_folder

CLIENTS = ("a", "b", "c")


def make_rows(rounds, **verdicts):
    """Rounds in which a arrives, b is stopped and c is not asked, unless verdicts say else."""
    given = {"a": Verdict("arrived", seconds=1.5), "b": Verdict("stopped", "late"), **verdicts}
    totals = Totals()
    rows = []
    for round in range(1, rounds + 1):
        totals.add(list(given), list(given.values()))
        row = round_row(
            round,
            seconds=5.0,
            clients=list(given),
            inclusion=[0.5] * len(given),
            verdicts=list(given.values()),
            known=CLIENTS,
            totals=totals,
            probabilities={"a": 0.5, "b": 0.5, "c": 0.0},
        )
        rows.append(row)
    return rows


def write(folder, rows, deadline=5.0, clients=3):
    about = {"rounds": len(rows), "selector": "e3cs-0.5", "cohort_size": 2, "clients": clients}
    run_folder.write_about(folder, {**about, "deadline": deadline, "seed": 0})
    journal = Journal(folder)
    for row in rows:
        journal.write(row)
    return folder / "rounds.jsonl"


def test_a_journal_becomes_a_log(tmp_path):
    write(tmp_path, make_rows(3))
    log = read_log(tmp_path)
    assert log.clients == CLIENTS
    assert log.rounds.tolist() == [1, 2, 3]
    assert log.arrived.tolist() == [True, False] * 3
    assert log.seconds[0] == 1.5
    assert np.isnan(log.seconds[1])
    assert log.late[1] == 1
    assert log.inclusion.tolist() == [0.5] * 6
    assert (log.cohort, log.deadline, log.selector) == (2, 5.0, "e3cs-0.5")
    assert log.available.tolist() == [[True, True, False]] * 3
    assert log.notes == ()


def test_the_journal_itself_may_be_named(tmp_path):
    path = write(tmp_path, make_rows(3))
    assert read_log(path).num_rounds == 3


def test_a_journal_that_is_cut_at_any_byte_is_read_up_to_there_or_refused(tmp_path):
    path = write(tmp_path, make_rows(2))
    content = path.read_bytes()
    length = content.index(b"\n") + 1
    complete = {length - 1: 1, length: 1, len(content) - 1: 2, len(content): 2}
    for end in range(len(content) + 1):
        path.write_bytes(content[:end])
        rounds = 0 if end < length - 1 else 1 + (end >= len(content) - 1)
        if not rounds:
            with pytest.raises(ValueError, match="at least one round"):
                read_journal(tmp_path)
            continue
        log = read_journal(tmp_path)
        assert log.num_rounds == rounds, end
        has_note = any("incomplete" in note for note in log.notes)
        assert has_note == (end not in complete), end


def test_a_journal_damaged_in_its_middle_is_refused_by_line(tmp_path):
    path = write(tmp_path, make_rows(3))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"arrived", b"arrivel", 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match=r"rounds\.jsonl .*line 2"):
        read_journal(tmp_path)


@pytest.mark.parametrize("order", [(1, 1), (2, 1)])
def test_repeated_rounds_are_refused_by_line(tmp_path, order):
    first, second = make_rows(2)
    path = write(tmp_path, [])
    rows = {1: first, 2: second}
    path.write_text("".join(to_json_line(rows[number]) for number in order))
    with pytest.raises(ValueError, match=r"round in line 2 of .*rounds\.jsonl must be"):
        read_journal(tmp_path)


def test_a_client_that_is_none_of_the_round_is_left_out_and_said(tmp_path):
    write(tmp_path, make_rows(2, stranger=Verdict("arrived", seconds=1.0)))
    log = read_journal(tmp_path)
    assert log.clients == CLIENTS
    (note,) = log.notes
    assert "2 questions to clients that were none of their round's" in note
    assert "stranger in round 1" in note


def test_more_clients_than_announced_are_kept_and_said(tmp_path):
    write(tmp_path, make_rows(2), clients=2)
    log = read_journal(tmp_path)
    assert log.num_clients == 3
    assert "names 3 clients, the run announced 2" in log.notes[0]


def test_clients_that_never_came_count_as_clients(tmp_path):
    write(tmp_path, make_rows(2), clients=5)
    assert read_journal(tmp_path).num_clients == 5


@pytest.mark.parametrize("seconds", [-3.0, 86_400.0, 7.5])
def test_a_clock_that_jumps_costs_the_time_not_the_answer(tmp_path, seconds):
    write(tmp_path, make_rows(2, a=Verdict("arrived", seconds=seconds)))
    log = read_journal(tmp_path)
    assert log.arrived.tolist() == [True, False, True, False]
    assert not log.has_times
    assert "2 answer times" in log.notes[0]
    assert "clock" in log.notes[0]


def test_the_length_of_a_round_that_no_deadline_allows_is_forgotten(tmp_path):
    rows = make_rows(3)
    rows[1]["seconds"] = 4000.0
    write(tmp_path, rows)
    log = read_journal(tmp_path)
    assert np.isnan(log.round_seconds).tolist() == [False, True, False]
    assert "length of 1 rounds" in log.notes[0]


def test_answers_that_nobody_knows_are_left_out_and_said(tmp_path):
    write(tmp_path, make_rows(2, b=Verdict("unknown", "trouble")))
    log = read_journal(tmp_path)
    assert log.arrived.tolist() == [True, True]
    assert "2 questions whose answer is unknown" in log.notes[0]


def test_a_folder_without_a_journal_is_refused(tmp_path):
    run_folder.write_about(tmp_path, {"rounds": 3})
    with pytest.raises(ValueError, match=r"rounds\.jsonl must be the journal"):
        read_log(tmp_path)


def test_an_old_journal_without_checksums_is_read(tmp_path):
    path = write(tmp_path, [])
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(2)))
    assert read_journal(tmp_path).num_rounds == 2


def test_clients_that_a_closed_round_did_not_wait_for_are_left_out_and_said(tmp_path):
    write(tmp_path, make_rows(3, b=Verdict("unneeded", "enough others had answered")), "auto")
    log = read_log(tmp_path)
    assert log.arrived.tolist() == [True] * 3
    assert log.deadline is None
    assert any("3 questions are left out, because their rounds closed" in x for x in log.notes)
