"""Read the journal of a Flower run as a log. Flower itself is not needed."""

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

from fedcohort.advice.log import ARRIVED, FederationLog, Question, make_log
from fedcohort.lab import folder as run_folder

UNKNOWN = "unknown"  # the SuperLink had trouble; nobody knows what the client did
UNNEEDED = "unneeded"  # the round closed with enough answers before the client could answer
LATE = {"stopped": 1.0, "failed": 0.0, "rejected": 0.0, "lost": nan}
SLACK = 2.0  # seconds that a round may take beyond its deadline
Row = Mapping[str, Any]


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
    about = run_folder.read_about(folder)
    deadline = _number(about.get("deadline"))
    notes = _note_cut_line(path, len(rows))

    questions: list[Question] = []
    unknown = 0
    unneeded = 0
    strangers = []
    for row in rows:
        table = row["probabilities"]
        for asked in row["asked"]:
            if asked["status"] == UNKNOWN:
                unknown += 1
            elif asked["status"] == UNNEEDED:
                unneeded += 1
            elif table is not None and asked["client"] not in table:
                strangers.append(f"{asked['client']} in round {row['round']}")
            else:
                questions.append(_question(row["round"], asked))

    if unknown:
        notes.append(
            f"{unknown} questions whose answer is unknown, because the server had trouble, are "
            "left out."
        )
    if unneeded:
        notes.append(
            f"{unneeded} questions are left out, because their rounds closed with enough answers "
            "before these clients could answer."
        )
    if strangers:
        notes.append(
            f"{len(strangers)} questions to clients that were none of their round's are left out, "
            f"the first to {strangers[0]}."
        )
    notes += _forget_impossible_times(questions, rows, deadline)
    lengths, odd_rounds = _round_lengths(rows, deadline)
    if odd_rounds:
        notes.append(
            f"The length of {odd_rounds} rounds is more than twice the deadline, as if a clock had "
            "jumped: these lengths are left out."
        )
    names, note = _names(rows, about, questions)
    return make_log(
        str(folder),
        questions,
        names=names,
        round_seconds=lengths,
        deadline=deadline,
        selector=_word(about.get("selector")),
        available=_available(rows),
        notes=(*notes, *note),
    )


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


def _forget_impossible_times(
    questions: Sequence[Question], rows: Sequence[Row], deadline: float | None
) -> list[str]:
    """Forget answer times below 0 or longer than their round, and say how many there were."""
    longest = {row["round"]: float(row["seconds"]) + SLACK for row in rows}
    count = 0
    for question in questions:
        limit = longest[question.round]
        if deadline is not None:
            limit = min(limit, deadline + SLACK)
        if isfinite(question.seconds) and not 0 <= question.seconds <= limit:
            question.seconds = nan
            count += 1
    if not count:
        return []
    return [
        f"{count} answer times are below 0 or longer than their round, as if a clock had jumped: "
        "the answers count, their times do not."
    ]


def _round_lengths(rows: Sequence[Row], deadline: float | None) -> tuple[dict[int, float], int]:
    lengths = {}
    odd = 0
    for row in rows:
        seconds = float(row["seconds"])
        if deadline is not None and seconds > 2 * deadline + SLACK:
            seconds = nan
            odd += 1
        lengths[row["round"]] = seconds
    return lengths, odd


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


def _available(rows: Sequence[Row]) -> dict[int, set[str]] | None:
    """Return who could be asked in each round; None if a row does not say."""
    available = {}
    for row in rows:
        table = row["probabilities"]
        if table is None:
            return None
        present = {client for client, probability in table.items() if probability > 0}
        available[row["round"]] = present
    return available


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
