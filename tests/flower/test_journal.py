import json

import pytest

from fedcohort.flower.journal import Journal, Totals, round_row
from fedcohort.flower.verdicts import Verdict

ARRIVED, LOST = Verdict("arrived", seconds=1.25), Verdict("lost", "no answer by the deadline")


def rows(*rounds, probabilities=None):
    """Rounds in which client a arrives and client b is lost, of three known."""
    totals, written = Totals(), []
    for round in rounds:
        totals.add(["a", "b"], [ARRIVED, LOST])
        row = round_row(
            round,
            seconds=2.0,
            clients=["a", "b"],
            inclusion=[0.25, 0.75],
            verdicts=[ARRIVED, LOST],
            known=["a", "b", "c"],
            totals=totals,
            probabilities=probabilities,
        )
        written.append(row)
    return written


def empty_row(known):
    return round_row(
        1,
        seconds=0.0,
        clients=[],
        inclusion=[],
        verdicts=[],
        known=known,
        totals=Totals(),
        probabilities=None,
    )


def written(folder):
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


def test_small_probabilities_keep_their_digits():
    row = round_row(
        1,
        seconds=1.0,
        clients=["a"],
        inclusion=[1.23456789e-8],
        verdicts=[ARRIVED],
        known=["a"],
        totals=Totals(),
        probabilities=None,
    )
    assert row["asked"][0]["inclusion"] == 1.23457e-8  # 0 would say that nobody could be asked


def test_a_row_says_what_came_of_the_round():
    second = rows(1, 2, probabilities={"a": 0.5})[1]
    assert second == {
        "round": 2,
        "seconds": 2.0,
        "asked": [
            {"client": "a", "inclusion": 0.25, "status": "arrived", "reason": "", "seconds": 1.25},
            {
                "client": "b",
                "inclusion": 0.75,
                "status": "lost",
                "reason": "no answer by the deadline",
                "seconds": None,
            },
        ],
        "arrived": 1,
        "cep": 2,
        "success_ratio": 0.5,
        "fairness": pytest.approx(16 / (3 * 8)),  # counts 2, 2, 0: (2 + 2)^2 / (3 * (4 + 4))
        "probabilities": {"a": 0.5},
    }


def test_a_round_in_which_nobody_was_asked_is_a_row_like_others():
    row = empty_row(["a"])
    assert (row["asked"], row["arrived"], row["success_ratio"]) == ([], 0, 0.0)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert empty_row([])["fairness"] == 1.0


def test_every_round_is_one_json_object_on_one_line(tmp_path):
    journal = Journal(tmp_path / "deep" / "run")
    odd = 'a\nb\u2028c\x85 "quoted" ü🦊'
    row = round_row(
        1,
        seconds=0.0,
        clients=[odd],
        inclusion=[1.0],
        verdicts=[Verdict("failed", "line one\nline two")],
        known=[odd],
        totals=Totals({odd: 1}, 1, 0),
        probabilities={odd: 1.0},
    )
    journal.write(row)
    journal.write(rows(2)[0])
    lines = (tmp_path / "deep" / "run" / "rounds.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line)["round"] for line in lines[:-1]] == [1, 2]
    assert lines[-1] == b""
    assert json.loads(lines[0])["asked"][0]["client"] == odd
    assert len((tmp_path / "deep" / "run" / "rounds.jsonl").read_text().splitlines()) == 2


def test_a_resumed_run_writes_the_rounds_it_plays_again_once(tmp_path):
    first = Journal(tmp_path)
    for row in rows(1, 2, 3):
        first.write(row)
    again = Journal(tmp_path, done=2)
    assert [row["round"] for row in written(tmp_path)] == [1, 2]
    again.write(rows(3)[0])
    assert [row["round"] for row in written(tmp_path)] == [1, 2, 3]


@pytest.mark.parametrize(
    "cut",
    [
        '{"round": 2, "sec',
        '{"round": 2',
        "{",
        "null",
        '"round"',
        "2",
        "{}",
        '{"round": null}',
        "\x00",
    ],
)
def test_a_line_that_is_no_round_is_dropped(tmp_path, cut):
    Journal(tmp_path).write(rows(1)[0])
    with (tmp_path / "rounds.jsonl").open("a") as file:
        file.write(cut)
    journal = Journal(tmp_path, done=1)
    journal.write(rows(2)[0])
    assert [row["round"] for row in written(tmp_path)] == [1, 2]


@pytest.mark.parametrize("place", [0, 1])
def test_a_journal_with_bytes_that_are_no_text_is_set_aside_and_read_as_far_as_possible(
    tmp_path, logged, place
):
    first, second = (json.dumps(row).encode() for row in rows(1, 2))
    lines = [first, second]
    lines.insert(place, b'{"round": 1, "note": "\xff\xfe"}')
    damaged = b"\n".join(lines) + b"\n"
    (tmp_path / "rounds.jsonl").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"rounds\.jsonl must hold .*from_previous=True sets"):
        Journal(tmp_path, done=2)
    assert (tmp_path / "rounds.jsonl").read_bytes() == damaged
    Journal(tmp_path, done=2, repair=True)
    assert [row["round"] for row in written(tmp_path)] == [1, 2]
    assert (tmp_path / "rounds.jsonl.damaged-1").read_bytes() == damaged
    assert sum("rounds.jsonl is damaged" in line for line in logged) == 1

    (tmp_path / "rounds.jsonl").write_bytes(b"\x80" + damaged)
    Journal(tmp_path, done=2, repair=True)
    assert (tmp_path / "rounds.jsonl.damaged-1").read_bytes() == damaged
    assert (tmp_path / "rounds.jsonl.damaged-2").read_bytes() == b"\x80" + damaged


def test_a_last_line_without_its_end_is_kept_if_it_is_whole(tmp_path):
    (tmp_path / "rounds.jsonl").write_text(json.dumps(rows(1)[0]))
    Journal(tmp_path, done=1).write(rows(2)[0])
    assert [row["round"] for row in written(tmp_path)] == [1, 2]


def test_a_new_run_begins_with_an_empty_journal(tmp_path):
    Journal(tmp_path).write(rows(1)[0])
    Journal(tmp_path)
    assert written(tmp_path) == []


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Journal(None).write(rows(1)[0])
    assert list(tmp_path.iterdir()) == []
