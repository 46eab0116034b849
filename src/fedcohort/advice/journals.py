"""Read the journal of a Flower run as a log. Flower itself is not needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

from fedcohort.advice.broken import common_reasons
from fedcohort.advice.journal_times import (
    STOPPED,
    Row,
    forget_impossible_times,
    round_lengths,
    settle_lost,
    stopping_grace,
)
from fedcohort.advice.log import ARRIVED, LATE_ANSWER, FederationLog, Question, make_log
from fedcohort.advice.wording import printable
from fedcohort.checks import check_positive, check_range, shown
from fedcohort.lab import folder as run_folder

UNKNOWN = "unknown"  # the SuperLink had trouble; nobody knows what the client did
UNNEEDED = "unneeded"  # the round closed with enough answers before the client could answer
LATE = {STOPPED: 1.0, "failed": 0.0, "rejected": 0.0}  # nothing is known of other failures


def read_journal(folder: Path) -> FederationLog:
    """Return the log of a Flower run.

    Repairs are stated in the notes of the log: a last line that was cut off, clients whose answer
    nobody knows, clients that are none of their round's, and answer times that no clock allows.

    Args:
        folder: The run folder, with `rounds.jsonl` in it.

    Raises:
        ValueError: If a line is damaged, rounds do not ascend, or no round is complete.
    """
    path = run_folder.journal_path(folder)
    if not path.exists():
        raise ValueError(f"{path} must be the journal of a Flower run, got no such file")
    rows = run_folder.load_journal(folder)
    if not rows:
        size = path.stat().st_size
        raise ValueError(f"{path} must hold at least one round, got {size} bytes without one")
    for number, row in enumerate(rows, start=1):
        _check_row(row, f"line {number} of {path}")
    about = run_folder.read_about(folder)
    fixed, deadlines = _deadlines(rows, about, path)
    limits = {row["round"]: fixed or inf for row in rows} | (deadlines or {})
    notes = _note_cut_line(path, len(rows))
    questions, left_out = _questions(rows, limits)
    settle_lost(questions, limits)
    notes += left_out
    untimed = sum(question.arrived and isnan(question.seconds) for question in questions)
    if untimed:
        notes.append(f"{untimed} answers have no time that is a number: only the answers count.")
    notes += forget_impossible_times(questions, rows, limits)
    lengths, odd_rounds = round_lengths(rows, limits)
    if odd_rounds:
        notes.append(
            f"The length of {odd_rounds} rounds is more than twice the deadline, as if a clock had "
            "jumped: these lengths are left out."
        )
    names, note = _names(rows, about, questions)
    available, absence_note = _available(rows)
    log = make_log(
        str(folder),
        questions,
        names=names,
        round_seconds=lengths,
        deadline=fixed,
        deadlines=deadlines,
        selector=_word(about.get("selector")),
        available=available,
        notes=(*notes, *note, *absence_note),
        grace=stopping_grace(questions, limits),
    )
    everyone = (asked for row in rows for asked in row["asked"])
    return replace(log, rejections=common_reasons(everyone))


def _questions(
    rows: Sequence[Row], limits: Mapping[int, float]
) -> tuple[list[Question], list[str]]:
    """Return the questions of which something is known, and notes about the others."""
    resolved = _resolved(rows)
    questions: list[Question] = []
    unknown = 0
    known_later = 0
    never_known = 0
    strangers = []
    for row in rows:
        table = row["probabilities"]
        for asked in row["asked"]:
            entry = resolved.get((row["round"], asked["client"]))
            if asked["status"] == UNKNOWN:
                unknown += 1
            elif table is not None and asked["client"] not in table:
                strangers.append(f"{printable(asked['client'])} in round {row['round']}")
            elif asked["status"] != UNNEEDED:
                questions.append(_question(row["round"], asked))
            elif entry is None:
                never_known += 1
            else:
                known_later += 1
                questions.append(_late_question(asked, entry, limits[row["round"]]))

    notes = []
    if unknown:
        notes.append(
            f"{unknown} requests whose answer is unknown, because the server had trouble, are "
            "left out."
        )
    if known_later or never_known:
        notes.append(
            f"{known_later + never_known} clients were not waited for, because their rounds closed "
            f"with enough answers: of {known_later} a later row says whether they answered, which "
            f"counts; the other {never_known} are left out."
        )
    if strangers:
        notes.append(
            f"{len(strangers)} requests to clients that were none of their round's are left out, "
            f"the first to {strangers[0]}."
        )
    return questions, notes


def _check_row(row: Row, where: str) -> None:
    """Refuse a client that is asked twice, and lists and probabilities that are none."""
    seen = set()
    for asked in row["asked"]:
        name = asked["client"]
        if name in seen:
            raise ValueError(f"asked in {where} must name a client once, got {name!r} twice")
        seen.add(name)
        if asked.get("inclusion") is not None:
            check_range(f"inclusion of {name} in {where}", asked["inclusion"], 0, 1)
    absent = row.get("absent", [])
    if not isinstance(absent, list) or not all(isinstance(name, str) for name in absent):
        raise ValueError(f"absent in {where} must be a list of names, got {shown(absent)}")
    late = row.get("late", [])
    if not isinstance(late, list) or not all(_is_late_entry(entry) for entry in late):
        raise ValueError(
            f"late in {where} must be a list of clients with round, status and seconds, "
            f"got {shown(late)}"
        )


def _is_late_entry(entry: Any) -> bool:
    kinds = {"round": int, "client": str, "status": str, "seconds": int | float}
    if not isinstance(entry, dict):
        return False
    return all(isinstance(entry.get(name), kind) for name, kind in kinds.items())


def _deadlines(
    rows: Sequence[Row], about: Row, path: Path
) -> tuple[float | None, dict[int, float] | None]:
    """Return the one deadline of all rounds, or that of each round if rows have their own."""
    if not any("deadline" in row for row in rows):
        return _number(about.get("deadline")), None
    deadlines = {}
    for number, row in enumerate(rows, start=1):
        if "deadline" in row:
            name = f"deadline in line {number} of {path}"
            deadlines[row["round"]] = check_positive(name, row["deadline"])
    return None, deadlines


def _resolved(rows: Sequence[Row]) -> dict[tuple[int, str], Row]:
    """Return what later rows say of clients that were not waited for, by round and client."""
    resolved: dict[tuple[int, str], Row] = {}
    for row in rows:
        for entry in row.get("late", ()):
            resolved[entry["round"], entry["client"]] = entry
    return resolved


def _late_question(asked: Row, entry: Row, limit: float) -> Question:
    """Return the question to a client that answered, or did not, after its round had closed."""
    question = _question(entry["round"], {**asked, "status": entry["status"]})
    seconds = float(entry["seconds"])
    if question.status == LATE_ANSWER:
        question.arrived = seconds <= limit
        question.seconds = seconds if question.arrived else nan
        question.late = nan if question.arrived else 1.0
    return question


def _question(round: int, asked: Row) -> Question:
    status = asked["status"]
    is_arrived = status == ARRIVED
    seconds = _number(asked.get("seconds"))
    inclusion = _number(asked.get("inclusion"))
    return Question(
        round=round,
        client=asked["client"],
        arrived=is_arrived,
        seconds=nan if seconds is None or not is_arrived else seconds,
        late=nan if is_arrived else LATE.get(status, nan),
        inclusion=nan if inclusion is None or not 0 < inclusion <= 1 else inclusion,
        status=status,
    )


def _note_cut_line(path: Path, rows: int) -> list[str]:
    content = path.read_bytes()
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    if lines > rows:
        return [
            f"The last line of {path.name} is incomplete and is left out; {rows} rounds are read."
        ]
    return []


def _names(
    rows: Sequence[Row], about: Row, questions: Sequence[Question]
) -> tuple[tuple[str, ...], list[str]]:
    """Return all clients that rows name, and a note if they are more or fewer than announced."""
    names = {question.client for question in questions}
    for row in rows:
        names |= set(row["probabilities"] or ())
    announced = about.get("clients")
    if not isinstance(announced, int) or isinstance(announced, bool):
        return tuple(names), []
    if len(names) > announced:
        note = (
            f"The journal names {len(names)} clients, the run announced {announced}: all are kept."
        )
        return tuple(names), [note]
    missing = range(announced - len(names))
    names |= {f"(never seen {number + 1})" for number in missing}
    return tuple(names), []


def _available(rows: Sequence[Row]) -> tuple[dict[int, set[str]] | None, list[str]]:
    """Return who could be asked in each round, None if a row does not say, and a note.

    A selector may give a client that is there the probability 0. So rows name the absent; in those
    of older versions nobody but the probabilities can tell.
    """
    available = {}
    guessed = 0
    for row in rows:
        table = row["probabilities"]
        if table is None:
            return None, []
        absent = row.get("absent")
        if absent is None:
            absent = [client for client, probability in table.items() if probability <= 0]
            guessed += len(absent)
        available[row["round"]] = set(table).difference(absent)
    if not guessed:
        return available, []
    note = (
        f"Older rows of the journal do not say who was absent: {guessed} times a client with the "
        "probability 0 counts as absent."
    )
    return available, [note]


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
