"""Availability traces: when each client was online, in seconds, as plain text.

The file is CSV with the header `client,on,off`. Each line is a time in which one client is online:
from `on` until `off`, in seconds since the trace began.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.checks import MAX_COUNT, check_int, check_positive, parse_number
from fedcohort.files import check_file
from fedcohort.memory import check_memory
from fedcohort.world.options import shortest
from fedcohort.world.trace import read_lines

COLUMNS = ("client", "on", "off")


@dataclass(frozen=True, eq=False)
class Intervals:
    """When clients are online; the times of one client do not overlap.

    Attributes:
        client: Client of each interval [n], in ascending order.
        on: When it begins, in seconds [n].
        off: When it ends [n].
    """

    client: Ints
    on: Floats
    off: Floats


def read_intervals(path: Path, num_clients: int | None = None) -> Intervals:
    r"""Read an availability trace.

    Args:
        path: A CSV file with the header `client,on,off`, in any order of lines.
        num_clients: Number of clients, if a line may not name another one.

    Returns:
        The intervals, sorted by client and time.

    Raises:
        ValueError: If the file cannot be read. The message names the file, and the line and column
            of the first mistake, counted from 1.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from fedcohort.world.intervals import read_intervals
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "trace.csv"
        ...     _ = path.write_text("client,on,off\n1,0,90\n0,30,60.5\n")
        ...     intervals = read_intervals(path)
        >>> intervals.client.tolist(), intervals.on.tolist(), intervals.off.tolist()
        ([0, 1], [30.0, 0.0], [60.5, 90.0])
    """
    check_file(path)
    header, *lines = read_lines(path, "a header")
    names = tuple(cell.strip() for cell in header.split(","))
    if names != COLUMNS:
        raise ValueError(f"{path}, line 1: must be {','.join(COLUMNS)}, got {header[:100]!r}")
    if not lines:
        raise ValueError(f"{path} must have at least one line below its header, got none")

    rows = []
    for number, line in enumerate(lines, start=2):
        rows.append((*_parse_line(path, number, line, num_clients), number))
    rows.sort()
    _check_disjoint(path, rows)
    client, on, off, _ = zip(*rows, strict=True)
    return Intervals(np.array(client), np.array(on), np.array(off))


def write_intervals(path: Path, intervals: Intervals) -> None:
    """Write an availability trace that `read_intervals` reads back exactly.

    Args:
        path: The file.
        intervals: What to write.
    """
    lines = [",".join(COLUMNS)]
    columns = (intervals.client.tolist(), intervals.on.tolist(), intervals.off.tolist())
    for client, on, off in zip(*columns, strict=True):
        lines.append(f"{client},{shortest(on)},{shortest(off)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def resample(intervals: Intervals, num_clients: int, round_seconds: float) -> tuple[Bools, Bools]:
    """Turn an availability trace into rounds of equal length.

    The trace has as many rounds as end before its last time. Round t lasts from t L until
    (t + 1) L, where L is the length of a round.

    Args:
        intervals: When clients are online.
        num_clients: Number of clients, K. Those without an interval are never online.
        round_seconds: Length of a round, L.

    Returns:
        Who is online when a round begins [T, K], and who also stays until it ends [T, K].

    Raises:
        ValueError: If the trace is shorter than a round, or does not fit the memory.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.intervals import Intervals, resample
        >>> trace = Intervals(np.array([0, 1]), np.array([0.0, 5.0]), np.array([25.0, 30.0]))
        >>> online, stays = resample(trace, num_clients=2, round_seconds=10)
        >>> online.astype(int).tolist()
        [[1, 0], [1, 1], [1, 1]]
        >>> stays.astype(int).tolist()
        [[1, 0], [1, 1], [0, 1]]
    """
    length = check_positive("round_seconds", round_seconds)
    check_int("num_clients", num_clients, int(intervals.client.max()) + 1)
    merged = _merge(intervals)
    last = float(merged.off.max())
    if last / length > MAX_COUNT:
        raise ValueError(
            f"round_seconds must be at least {last / MAX_COUNT:g}, because the trace lasts "
            f"{last:g} seconds and may have at most {MAX_COUNT} rounds, got {length:g}"
        )
    rounds = int(_rounds_ended(merged.off, length).max())
    if not rounds:
        raise ValueError(
            f"round_seconds must be at most {last:g}, the length of the trace, got {length:g}"
        )
    check_memory(
        "clients and round_seconds",
        f"{num_clients} clients and {rounds} rounds",
        needed=4 * num_clients * rounds,
    )
    first = _rounds_begun(merged.on, length)
    online = _fill(merged.client, first, _rounds_begun(merged.off, length), rounds, num_clients)
    stays = _fill(merged.client, first, _rounds_ended(merged.off, length), rounds, num_clients)
    return online, stays


def _parse_line(
    path: Path, number: int, line: str, num_clients: int | None
) -> tuple[int, float, float]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(COLUMNS):
        raise ValueError(
            f"{path}, line {number}: must have {len(COLUMNS)} columns, "
            f"{','.join(COLUMNS)}, got {len(cells)}"
        )
    client = _parse_client(path, number, cells[0], num_clients)
    on = _parse_seconds(path, number, "on", cells[1])
    off = _parse_seconds(path, number, "off", cells[2])
    if not on < off:
        raise ValueError(
            f"{path}, line {number}, column 3 (off): must be above on, {cells[1]}, got {cells[2]}"
        )
    return client, on, off


def _parse_client(path: Path, number: int, cell: str, num_clients: int | None) -> int:
    is_number = cell.isascii() and cell.isdigit() and len(cell) < 10
    client = int(cell) if is_number else -1
    bound = "of at least 0" if num_clients is None else f"from 0 to {num_clients - 1}"
    is_above = num_clients is not None and client >= num_clients
    if client < 0 or is_above:
        raise ValueError(
            f"{path}, line {number}, column 1 (client): must be a whole number {bound}, "
            f"got {cell[:100]!r}"
        )
    return client


def _parse_seconds(path: Path, number: int, name: str, cell: str) -> float:
    seconds = parse_number(cell)
    if not 0 <= seconds < np.inf:
        column = COLUMNS.index(name) + 1
        raise ValueError(
            f"{path}, line {number}, column {column} ({name}): must be seconds of at least 0, "
            f"got {cell[:100]!r}"
        )
    return seconds


def _check_disjoint(path: Path, rows: Sequence[tuple[int, float, float, int]]) -> None:
    """Refuse times of one client that overlap; one may end where the next begins."""
    for before, after in pairwise(rows):
        if before[0] == after[0] and after[1] < before[2]:
            raise ValueError(
                f"{path}, line {after[3]}, column 2 (on): must be at least {before[2]:g}, where "
                f"line {before[3]} of client {after[0]} ends, got {after[1]:g}"
            )


def _merge(intervals: Intervals) -> Intervals:
    """Join times of a client that touch, so that it stays online from one to the next."""
    client, on, off = intervals.client, intervals.on, intervals.off
    touches = (client[1:] == client[:-1]) & (on[1:] == off[:-1])
    begins = np.concatenate([[True], ~touches])
    ends = np.concatenate([~touches, [True]])
    return Intervals(client[begins], on[begins], off[ends])


def _rounds_begun(seconds: Floats, length: float) -> Ints:
    """Return the first round [n] that begins at these times or later; no rounding errors."""
    rounds = np.ceil(seconds / length)
    rounds -= (rounds - 1) * length >= seconds
    rounds += rounds * length < seconds
    return rounds.astype(np.int64)


def _rounds_ended(seconds: Floats, length: float) -> Ints:
    """Return how many rounds [n] end at these times or earlier."""
    begun = _rounds_begun(seconds, length)
    return begun - (begun * length > seconds)


def _fill(client: Ints, first: Ints, end: Ints, rounds: int, num_clients: int) -> Bools:
    """Return a table [T, K] that is True for each client from its first rounds to its ends."""
    steps = np.zeros((rounds + 1, num_clients), dtype=np.int8)
    np.add.at(steps, (np.minimum(first, rounds), client), 1)
    np.add.at(steps, (np.minimum(np.maximum(end, first), rounds), client), -1)
    return np.asarray(np.cumsum(steps, axis=0, dtype=np.int8)[:rounds] > 0)
