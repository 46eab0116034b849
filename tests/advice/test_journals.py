"""Journals as Flower runs write them: whole, cut, and with what should not be there."""

import json
from time import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="journals are written by the code of a Flower run")

from fedcohort.advice.deadline import advise_deadline
from fedcohort.advice.durations import fit_durations
from fedcohort.advice.journals import read_journal
from fedcohort.advice.sources import read_log
from fedcohort.advice.special_functions import normal_tail
from fedcohort.advice.waste import measure_waste
from fedcohort.early_stop import stop_margin
from fedcohort.files import to_json_line
from fedcohort.flower.client import force_stop, time_left
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
            absent=["c"],
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


def test_a_log_has_the_reasons_of_the_rejections_of_its_journal(tmp_path):
    write(tmp_path, make_rows(3, b=Verdict("rejected", "nan in the update")))
    log = read_log(tmp_path)
    assert log.rejections == {"b": "nan in the update"}
    assert log.since(1).rejections == log.rejections


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
    write(tmp_path, make_rows(2, **{"stranger\x1b[31m": Verdict("arrived", seconds=1.0)}))
    log = read_journal(tmp_path)
    assert log.clients == CLIENTS
    (note,) = log.notes
    assert "2 requests to clients that were none of their round's" in note
    assert "stranger?[31m in round 1" in note  # the name cannot command a terminal


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
    assert not np.isfinite(log.seconds).any()
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
    assert "2 requests whose answer is unknown" in log.notes[0]


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
    (note,) = log.notes
    assert note.startswith("3 clients were not waited for")
    assert note.endswith("the other 3 are left out.")


def test_what_a_later_row_says_of_such_clients_counts(tmp_path):
    """b answers after 4 s of 5 in round 1, never in round 2; of round 3 nothing is known."""
    rows = make_rows(3, b=Verdict("unneeded", "enough others had answered"))
    rows[1]["late"] = [{"client": "b", "round": 1, "status": "late", "seconds": 4.0}]
    rows[2]["late"] = [{"client": "b", "round": 2, "status": "lost", "seconds": 0.0}]
    write(tmp_path, rows)
    log = read_log(tmp_path)
    of_b = log.client == 1
    assert log.arrived[of_b].tolist() == [True, False]
    assert log.seconds[of_b][0] == 4.0
    assert log.status[of_b].tolist() == ["late", "lost"]
    assert "of 2 a later row says whether they answered" in log.notes[0]
    waste = measure_waste(log, np.ones((1, 3)), block=1)
    assert waste.share.value == pytest.approx(2 / 5)  # the late answer did not count
    assert waste.reasons == {"late": 1, "lost": 1}


def test_deadlines_that_differ_between_rounds_are_those_of_their_rows(tmp_path):
    rows = make_rows(3)
    for row, deadline in zip(rows, (2.0, 6.0, 4.0), strict=True):
        row["deadline"] = deadline
    write(tmp_path, rows, deadline="auto")
    log = read_log(tmp_path)
    assert log.deadline_in_round.tolist() == [2.0, 6.0, 4.0]
    assert (log.deadline, log.longest_deadline) == (4.0, 6.0)
    rows[1]["deadline"] = -1
    write(tmp_path / "bad", rows, deadline="auto")
    with pytest.raises(
        ValueError, match=r"deadline in line 2 of .*rounds\.jsonl must be .* got -1"
    ):
        read_log(tmp_path / "bad")


def test_a_round_without_a_deadline_among_others_has_none(tmp_path):
    """A run was resumed with deadlines that differ: the first row has none."""
    rows = make_rows(3, b=Verdict("unneeded", "enough others had answered"))
    rows[1]["deadline"] = rows[2]["deadline"] = 6.0
    rows[1]["late"] = [{"client": "b", "round": 1, "status": "late", "seconds": 4.0}]
    write(tmp_path, rows, deadline="auto")
    log = read_log(tmp_path)
    assert log.deadline_in_round.tolist() == [np.inf, 6.0, 6.0]
    assert log.seconds[log.client == 1].tolist() == [4.0]


def test_a_client_with_probability_0_is_not_absent_unless_the_row_says_so(tmp_path):
    rows = make_rows(2)
    rows[0]["absent"] = []
    write(tmp_path, rows)
    log = read_log(tmp_path)
    assert log.available.tolist() == [[True, True, True], [True, True, False]]
    assert log.notes == ()


def test_rows_of_older_versions_do_not_say_who_was_absent(tmp_path):
    rows = make_rows(2)
    for row in rows:
        del row["absent"]
    write(tmp_path, rows)
    log = read_log(tmp_path)
    assert log.available.tolist() == [[True, True, False]] * 2
    assert "2 times a client with the probability 0 counts as absent" in log.notes[0]


def change_asked(rows, **values):
    rows[1]["asked"][0].update(values)


DAMAGE = {
    "a client twice": (
        lambda rows: rows[1]["asked"].append(rows[1]["asked"][0]),
        "asked in line 2 of .*rounds.jsonl must name a client once, got 'a' twice",
    ),
    "a probability of 2": (
        lambda rows: change_asked(rows, inclusion=2),
        "inclusion of a in line 2 of .* must be between 0 and 1, got 2",
    ),
    "absent as a word": (lambda rows: rows[1].update(absent="c"), "absent in line 2 .* got 'c'"),
    "absent as numbers": (lambda rows: rows[1].update(absent=[3]), "absent in line 2 .* got .3."),
    "late as numbers": (lambda rows: rows[1].update(late=[3]), "late in line 2 .* got .3."),
    "late without a name": (
        lambda rows: rows[2].update(late=[{"round": [1], "status": "late", "seconds": 1.0}]),
        "late in line 3 ",
    ),
    "a round below 0 s": (lambda rows: rows[1].update(seconds=-5), "seconds in line 2 .* got -5"),
    "a round of no number": (
        lambda rows: rows[1].update(seconds=float("nan")),
        "seconds in line 2 .* got nan",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_values_that_no_run_writes_are_refused_by_line(tmp_path, kind):
    damage, message = DAMAGE[kind]
    rows = make_rows(3)
    damage(rows)
    path = write(tmp_path, [])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=message):
        read_log(tmp_path)


@pytest.mark.parametrize("seconds", [float("nan"), "soon", None])
def test_an_answer_without_a_time_that_is_a_number_counts_and_is_said(tmp_path, seconds):
    rows = make_rows(3)
    change_asked(rows, seconds=seconds)
    path = write(tmp_path, [])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(tmp_path)
    assert log.arrived.tolist() == [True, False] * 3
    assert log.notes == ("1 answers have no time that is a number: only the answers count.",)


@pytest.mark.parametrize("content", [b"", bytes(300), b"\x1f\x8b\x08" + bytes(range(1, 10))])
def test_a_file_without_a_round_is_refused_by_name_and_size(tmp_path, content):
    path = write(tmp_path, [])
    path.write_bytes(content)
    message = rf"rounds\.jsonl must hold at least one round, got {len(content)} bytes"
    with pytest.raises(ValueError, match=message):
        read_log(tmp_path)


@pytest.mark.parametrize("content", [bytes(range(256)) * 4, b"\n\n", b"{}\n"])
def test_a_file_of_something_else_is_refused_by_line(tmp_path, content):
    path = write(tmp_path, [])
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rounds\.jsonl must hold one round per line, got line 1"):
        read_log(tmp_path)


def test_line_ends_of_windows_are_read_where_no_checksum_forbids_it(tmp_path):
    """A sealed line was changed, so it is refused; an old one has no checksum."""
    path = write(tmp_path, make_rows(2))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(ValueError, match=r"line 1: .*was changed"):
        read_log(tmp_path)
    path.write_text("".join(json.dumps(row) + "\r\n" for row in make_rows(2)))
    assert read_log(tmp_path).num_rounds == 2


# --- Clients that stop before the deadline --------------------------------------------------


def timed_journal(folder, *, rounds, deadline, median, grace, rate=0.8, spread=0.4, seed=0):
    """Five of 20 clients are asked; late ones report `stopped`, and a fifth of all is `lost`."""
    rng = np.random.default_rng(seed)
    stop = deadline - min(grace, 0.2 * deadline)
    names = [f"c{client}" for client in range(20)]
    totals = Totals()
    rows = []
    for round in range(1, rounds + 1):
        clients = rng.choice(names, size=5, replace=False).tolist()
        verdicts = []
        for seconds in median * np.exp(spread * rng.standard_normal(5)):
            if rng.random() >= rate:
                verdicts.append(Verdict("lost", "no answer"))
            elif seconds <= stop:
                verdicts.append(Verdict("arrived", seconds=round_to_milliseconds(seconds)))
            else:
                verdicts.append(Verdict("stopped", "late"))
        totals.add(clients, verdicts)
        row = round_row(
            round,
            seconds=deadline,
            clients=clients,
            inclusion=[0.25] * 5,
            verdicts=verdicts,
            known=names,
            totals=totals,
            probabilities=dict.fromkeys(names, 0.25),
            absent=[],
        )
        rows.append(row)
    write(folder, rows, deadline=deadline, clients=20)
    return read_journal(folder)


def round_to_milliseconds(seconds):
    return round(float(seconds), 3)


def test_a_lost_client_was_not_late_if_late_ones_say_that_they_were_stopped(tmp_path):
    write(tmp_path, make_rows(2, c=Verdict("lost", "no answer")))
    assert read_journal(tmp_path).late[2] == 0


def test_a_lost_client_may_have_been_late_if_nobody_says_so(tmp_path):
    write(tmp_path, make_rows(2, b=Verdict("lost", "no answer")))
    assert np.isnan(read_journal(tmp_path).late[1])


def test_without_a_deadline_nobody_is_late(tmp_path):
    write(tmp_path, make_rows(2, b=Verdict("lost", "no answer")), deadline=None)
    assert read_journal(tmp_path).late[1] == 0


def test_lateness_counts_once_where_clients_report_it(tmp_path):
    """Clients answer 8 times of 10, with a median of 20 s that is also the deadline.

    The standard errors are 0.01 for the rate and 0.35 s for the median.
    """
    log = timed_journal(tmp_path, rounds=300, deadline=20.0, median=20.0, grace=0.0)
    found = fit_durations(log)
    assert found.answers.mean() == pytest.approx(0.8, abs=0.04)
    assert np.exp(found.log_median).mean() == pytest.approx(20.0, abs=1.5)
    assert not found.by_chance
    advised = advise_deadline(log, block=5, rng=np.random.default_rng(0))
    assert advised.best > 28.0  # 33.4 s keep nine answers of ten
    assert not advised.is_beyond


@pytest.mark.parametrize(("median", "deadline"), [(5.0, 12.5), (20.0, 50.0)])
def test_a_deadline_allows_for_the_time_in_which_clients_stop(tmp_path, median, deadline):
    """Work stops at D - min(2 s, D / 5), so the share kept is that of answers until then.

    Of 675 answers 92 % are kept: five standard errors are 5.2 points.
    """
    log = timed_journal(
        tmp_path, rounds=150, deadline=deadline, median=median, grace=2.0, rate=0.9, spread=0.25
    )
    found = advise_deadline(log, block=4, rng=np.random.default_rng(0))
    margin = min(2.0, 0.2 * found.best)
    assert found.stops_before == pytest.approx(margin)
    stop = found.best - margin
    truth = 1 - float(normal_tail(np.log(stop / median) / 0.25))
    assert found.kept[found.nearest(found.best)] == pytest.approx(truth, abs=0.052)
    assert truth > 0.87


def test_clients_that_work_until_the_deadline_need_no_margin(tmp_path):
    log = timed_journal(tmp_path, rounds=100, deadline=20.0, median=20.0, grace=0.0)
    assert log.grace < 0.5
    early = timed_journal(tmp_path, rounds=100, deadline=20.0, median=20.0, grace=2.0)
    assert early.grace == 2.0


@pytest.mark.parametrize("deadline", [5.0, 60.0])
def test_the_margin_of_the_advice_is_that_of_the_client(deadline):
    metadata = SimpleNamespace(message_type="train", ttl=deadline, created_at=time())
    left = force_stop(SimpleNamespace(metadata=metadata), None, lambda *_: time_left())
    assert left == pytest.approx(deadline - float(stop_margin(deadline)), abs=0.2)
