"""Traces: recorded rounds as a table with one row per round and one column per client.

A trace says who answers (0 and 1), or after how many seconds (infinity for never). It is read from
a CSV file or from a NumPy file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.checks import one_line, parse_number
from fedcohort.files import check_file

ARRAY_FILES = (".npy", ".npz")


def read_trace(path: Path) -> npt.NDArray[Any]:
    """Read recorded rounds from a CSV, .npy or .npz file.

    A CSV file is plain text in UTF-8 without a header: one line per round, one column per client.
    A file in which every entry is written `0` or `1` says who answers. Any other file says after
    how many seconds, with `inf` for never. An .npz file must hold a single array, and arrays must
    not be pickled.

    Args:
        path: The file. Names that do not end in .npy or .npz are read as CSV.

    Returns:
        The table [T, K]: bool for answers, float64 for seconds.

    Raises:
        ValueError: If the file cannot be read, is empty, or holds anything else. The message names
            the file, and the line and column or row and column, counted from 1.
    """
    check_file(path)
    if path.suffix.lower() in ARRAY_FILES:
        return _read_array(path)
    return _read_csv(path)


def as_trace(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return recorded rounds [T, ..., K] as bool answers or float seconds, or refuse them."""
    table = np.asarray(values)
    if table.dtype.kind in "iu" and np.isin(table, (0, 1)).all():
        table = table.astype(np.bool_)
    is_bool = table.dtype.kind == "b"
    is_seconds = table.dtype.kind == "f" and bool((table >= 0).all())
    if table.ndim < 2 or not (is_bool or is_seconds):
        raise ValueError(
            "table must be rows [T, K] of who answers (bool) or after how many seconds "
            "(float, at least 0, inf for never), "
            f"got {table.dtype} of shape {table.shape}"
        )
    return table


def _read_csv(path: Path) -> npt.NDArray[Any]:
    """Read a table from lines of text."""
    rows: list[Floats] = []
    only_answers = True
    for number, line in enumerate(read_lines(path, "one per round"), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if rows and len(cells) != len(rows[0]):
            raise ValueError(
                f"{path}, line {number}: every line must have {len(rows[0])} columns, "
                f"as the first has, got {len(cells)}"
            )
        only_answers = only_answers and set(cells) <= {"0", "1"}
        rows.append(_parse_cells(path, number, cells))

    table = np.stack(rows)
    if only_answers:
        return table.astype(np.bool_)
    return table


def read_lines(path: Path, purpose: str) -> list[str]:
    """Return the lines of a text file, without empty ones at its end.

    Args:
        path: The file.
        purpose: What its lines are for, for the message about an empty file.

    Raises:
        ValueError: If the file cannot be read, is not in UTF-8, or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path} must be plain text in UTF-8, got byte {error.object[error.start]:#04x} "
            f"in line {line}"
        ) from None
    except OSError as error:
        raise ValueError(f"{path} must be a file that can be read, got: {error.strerror}") from None
    text = text.rstrip()
    if not text:
        raise ValueError(f"{path} must have at least one line, {purpose}, got an empty file")
    return text.split("\n")  # `splitlines` would also split at characters that a name may hold


def _parse_cells(path: Path, line: int, cells: list[str]) -> Floats:
    """Return one line of a table as numbers, or name the first cell that is none."""
    row = np.empty(len(cells))
    for column, cell in enumerate(cells):
        row[column] = parse_number(cell)
        if not row[column] >= 0:  # also false for nan
            raise ValueError(
                f"{path}, line {line}, column {column + 1}: must be 0 or 1, or seconds "
                f"of at least 0 (inf for never), got {cell!r}"
            )
    return row


def _read_array(path: Path) -> npt.NDArray[Any]:
    """Read a table from a NumPy file."""
    table = _load_array(path)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"{path} must hold a table [rounds, clients] of at least one of each, "
            f"got shape {table.shape}"
        )
    if table.dtype.kind == "b":
        return table
    if table.dtype.kind in "iu":
        _check_entries(path, table, (table == 0) | (table == 1), "0 or 1, or seconds as floats")
        return table.astype(np.bool_)
    if table.dtype.kind == "f":
        _check_entries(path, table, table >= 0, "seconds of at least 0 (inf for never)")
        return table.astype(np.float64)
    raise ValueError(f"{path} must hold answers (bool) or seconds (float), got {table.dtype}")


def _load_array(path: Path) -> npt.NDArray[Any]:
    """Return the one array of a NumPy file."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            names = loaded.files
            if len(names) == 1:
                return np.asarray(loaded[names[0]])
    except Exception as error:  # NumPy's reader raises many kinds for a damaged file
        reason = one_line(error)
        if "pickle" in reason:  # NumPy's own advice is to trust the file
            reason = "pickled data"
        raise ValueError(f"{path} must be a NumPy file without pickle, got: {reason}") from None
    raise ValueError(f"{path} must hold one array, got {len(names)}: {', '.join(names)}")


def _check_entries(
    path: Path, table: npt.NDArray[Any], is_good: npt.NDArray[np.bool_], bound: str
) -> None:
    """Refuse a table by its first bad entry."""
    if is_good.all():
        return
    row, column = np.argwhere(~is_good)[0]
    raise ValueError(
        f"{path}, row {row + 1}, column {column + 1}: must be {bound}, got {table[row, column]}"
    )
