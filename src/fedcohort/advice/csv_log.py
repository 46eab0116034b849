"""Read a log from CSV: one line for each client that was asked in a round."""

import csv
from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path

from fedcohort.advice.log import ARRIVED, FederationLog, Question, make_log
from fedcohort.checks import MAX_COUNT, parse_number
from fedcohort.files import check_file
from fedcohort.world.trace import read_lines

COLUMNS = ("round", "client", "asked", "arrived", "seconds")
OPTIONAL = "inclusion"
MOST_SECONDS = 1e9  # thirty years; today's date in seconds since 1970 is larger
LEAST_INCLUSION = 1e-12
LEAST_WAITS = 3  # failures after the same time from which a deadline is inferred
SAME_WAIT = 0.01  # relative difference of waiting times that count as the same


def is_log_header(line: str) -> bool:
    """Return whether a line is the header of a log."""
    try:
        names = _split(line)
    except csv.Error:
        return False
    return tuple(names) in (COLUMNS, (*COLUMNS, OPTIONAL))


def read_csv_log(path: Path, deadline: float | None = None) -> FederationLog:
    r"""Return the log that a CSV file holds.

    The header is `round,client,asked,arrived,seconds`, and `inclusion` may follow. `asked` and
    `arrived` are 0 or 1; a client that was not asked is only counted as one. `seconds` is the time
    until the answer, or for a failure how long the server waited; it may be empty. A cell may
    stand in quotes.

    Args:
        path: The file; lines may stand in any order.
        deadline: Seconds after which the server stopped waiting. Without it, it is the time for
            which the server waited in most failures, if it says so.

    Raises:
        ValueError: With the file, the line and the column of the first mistake, from 1.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "log.csv"
        ...     _ = path.write_text("round,client,asked,arrived,seconds\n1,a,1,1,2.5\n1,b,1,0,\n")
        ...     log = read_csv_log(path)
        >>> log.clients, log.arrived.tolist(), log.seconds.tolist()
        (('a', 'b'), [True, False], [2.5, nan])
    """
    check_file(path)
    header, *lines = read_lines(path, "a header")
    if not is_log_header(header):
        raise ValueError(
            f"{path}, line 1: must be {','.join(COLUMNS)}, with {OPTIONAL} or without, "
            f"got {header[:100]!r}"
        )
    columns = tuple(_split(header))

    questions = []
    names = set()
    seen: dict[tuple[int, str], int] = {}
    for number, line in enumerate(lines, start=2):
        values = _read_cells(path, number, line, len(columns))
        cells = dict(zip(columns, values, strict=True))
        question, is_asked = _parse(path, number, cells, columns)
        key = (question.round, question.client)
        if key in seen:
            raise ValueError(
                f"{path}, line {number}: must name a client once in a round, got client "
                f"{question.client!r} in round {question.round} as in line {seen[key]}"
            )
        seen[key] = number
        names.add(question.client)
        if is_asked:
            questions.append(question)
    notes = []
    if deadline is None:
        deadline, waits = infer_deadline(questions)
        if deadline is not None:
            notes.append(
                f"No deadline was given. In {waits} failures the server waited {deadline:g} s: "
                "that counts as the deadline. If it is another, give --deadline."
            )
    too_slow = 0
    for question in questions:
        is_too_slow = deadline is not None and question.seconds > deadline
        too_slow += question.arrived and is_too_slow
        if is_too_slow or not question.arrived:
            question.seconds = nan
    if too_slow:
        notes.append(
            f"{too_slow} answers took longer than the deadline of {deadline:g} s: the answers "
            "count, their times do not."
        )
    return make_log(str(path), questions, names=tuple(names), deadline=deadline, notes=tuple(notes))


def infer_deadline(questions: Sequence[Question]) -> tuple[float | None, int]:
    """Return the deadline that failures show, and how many of them show it.

    Most of the failures with a time must share the longest, and no answer may have taken longer.

    Args:
        questions: The questions, with the seconds of failures, too.

    Returns:
        None and 0 if they show none.

    Examples:
        >>> waits = [Question(1, "abc"[place], False, 40.0) for place in range(3)]
        >>> infer_deadline(waits), infer_deadline(waits[:2])
        ((40.0, 3), (None, 0))
    """
    waits = [one.seconds for one in questions if not one.arrived and isfinite(one.seconds)]
    longest = max(waits, default=0.0)
    alike = sum(seconds >= (1 - SAME_WAIT) * longest for seconds in waits)
    if alike < max(LEAST_WAITS, len(waits) / 2) or longest <= 0:
        return None, 0
    answers = [one.seconds for one in questions if one.arrived and isfinite(one.seconds)]
    slowest = max(answers, default=0.0)
    if slowest > (1 + SAME_WAIT) * longest:
        return None, 0
    return max(longest, slowest), alike


def _split(line: str) -> list[str]:
    """Return the cells of a line, which may stand in quotes, without spaces around them.

    Raises:
        csv.Error: If a quote is not closed, or something follows it in its cell.
    """
    cells = line.split(",")
    if '"' in line:  # only then: it is slower
        (cells,) = csv.reader([line], strict=True, skipinitialspace=True)
    return [cell.strip() for cell in cells]


def _read_cells(path: Path, number: int, line: str, count: int) -> list[str]:
    try:
        cells = _split(line)
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {number}: must close every quote at the end of its cell, got: {error}"
        ) from None
    if len(cells) != count:
        raise ValueError(
            f"{path}, line {number}: must have {count} columns as the header, got {len(cells)}"
        )
    return cells


def _parse(
    path: Path, number: int, cells: dict[str, str], columns: tuple[str, ...]
) -> tuple[Question, bool]:
    """Return the question of a line, and whether the client was asked at all."""

    def refuse(column: str, bound: str) -> ValueError:
        place = columns.index(column) + 1
        return ValueError(
            f"{path}, line {number}, column {place} ({column}): must be {bound}, "
            f"got {cells[column][:100]!r}"
        )

    round = _whole(cells["round"])
    if round is None:
        raise refuse("round", f"a whole number between 0 and {MAX_COUNT}")
    if not cells["client"]:
        raise refuse("client", "a name")
    for column in ("asked", "arrived"):
        if cells[column] not in ("0", "1"):
            raise refuse(column, "0 or 1")
    is_asked = cells["asked"] == "1"
    is_arrived = cells["arrived"] == "1"
    if is_arrived and not is_asked:
        raise refuse("arrived", "0 where asked is 0")
    seconds = _float(cells["seconds"])
    if cells["seconds"] and not 0 <= seconds <= MOST_SECONDS:
        raise refuse("seconds", f"empty, or seconds between 0 and {MOST_SECONDS:g}")
    inclusion = nan
    if cells.get(OPTIONAL):
        inclusion = _float(cells[OPTIONAL])
        least = LEAST_INCLUSION if is_asked else 0.0
        if not least <= inclusion <= 1:
            raise refuse(OPTIONAL, f"empty, or a probability between {least:g} and 1")
    status = ARRIVED if is_arrived else "lost"
    question = Question(round, cells["client"], is_arrived, seconds, nan, inclusion, status)
    return question, is_asked


def _whole(cell: str) -> int | None:
    is_number = cell.isascii() and cell.isdigit() and len(cell) < 11
    if not is_number or int(cell) > MAX_COUNT:
        return None
    return int(cell)


def _float(cell: str) -> float:
    value = parse_number(cell)
    return value if isfinite(value) else nan
