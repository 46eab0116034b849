"""Records of benchmarks: read, write, compare and show them.

A record is {"date", "machine", "commit", "command", "load", "suites": {name: {"about", "rows"}}},
where load is the load average at the end, null if unknown. A row has what, median, Q1, Q3, unit,
n and better ("higher" or "lower"). A row that could not be measured has n = 0 and no numbers.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from fedcohort.bench.measurement import Row
from fedcohort.files import atomic_write, check_folder
from fedcohort.reports.markup import as_markdown
from fedcohort.reports.words import format_value

Record = dict[str, Any]
FIELDS = ("what", "median", "Q1", "Q3", "unit", "n", "better")
TIMES = ("s", "ms", "µs")
MARGIN = 1.1  # a smaller factor is never called slower


def direction(unit: str, ratio: str) -> str:
    """Return whether "higher" or "lower" is better for a unit; `ratio` answers for ×."""
    if unit == "×":
        return ratio
    if unit in TIMES:
        return "lower"
    if unit.endswith("/s"):
        return "higher"
    raise ValueError(f"unit must be ×, {', '.join(TIMES)} or something/s, got {unit!r}")


def not_measured(what: str) -> Row:
    """Return the row of something that could not be measured."""
    return dict.fromkeys(FIELDS) | {"what": what, "unit": "s", "n": 0, "better": "lower"}


def write_record(path: Path, record: Record, overwrite: bool = False) -> None:
    """Write a record, whole or not at all."""
    check_target(path, record["date"], overwrite)
    with atomic_write(path) as draft:
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        draft.write_text(text + "\n", encoding="utf-8")


def check_target(path: Path, date: str, overwrite: bool) -> None:
    """Refuse to replace the record of another date, or a file that is no record.

    A place where no file can be written is refused, too. The folder is created if needed.
    """
    try:
        _try_to_write(path)
    except OSError as error:
        raise ValueError(
            f"out must be a file that can be written, got {path}: {error.strerror}"
        ) from None
    if path.is_dir():
        raise ValueError(f"out must be a file that can be written, got the folder {path}")
    if overwrite or not path.exists():
        return
    there = read_record(path)["date"]
    if there != date:
        raise ValueError(f"{path} must be new or of {date}, got a record of {there}")


def _try_to_write(path: Path) -> None:
    """Create a file beside the target, with a name as long as that of its draft; remove it."""
    check_folder("the folder of out", path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix):
        pass


def read_record(path: Path) -> Record:
    """Return the record that a file holds.

    Raises:
        ValueError: If the file holds no record; one line says what is wrong.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} must be readable, got {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON, got: {error}") from None
    problem = find_problem(record)
    if problem is not None:
        raise ValueError(f"{path} must be a record of benchmarks/run.py, got {problem}")
    return record


def find_problem(record: Any) -> str | None:
    """Return what is wrong with a record, None if nothing is."""
    if not isinstance(record, dict):
        return f"a {type(record).__name__}"
    for name in ("date", "machine", "commit", "command"):
        if not isinstance(record.get(name), str):
            return f"{name} = {record.get(name)!r}"
    if not isinstance(record.get("load"), int | float | None):
        return f"load = {record.get('load')!r}"
    suites = record.get("suites")
    if not isinstance(suites, dict):
        return f"suites = {suites!r}"
    for name, suite in suites.items():
        if not isinstance(suite, dict) or not isinstance(suite.get("about"), str):
            return f"suite {name!r} without a text about it"
        if not isinstance(suite.get("rows"), list):
            return f"suite {name!r} without a list of rows"
        known = set()
        for row in suite["rows"]:
            problem = find_row_problem(row)
            if problem is None and (row["what"], row["unit"]) in known:
                problem = f"{row['what']!r} twice"
            if problem is not None:
                return f"{problem} in suite {name!r}"
            known.add((row["what"], row["unit"]))
    return None


def find_row_problem(row: Any) -> str | None:
    """Return what is wrong with a row, None if nothing is."""
    if not isinstance(row, dict) or set(row) != set(FIELDS):
        return f"a row that has not exactly {', '.join(FIELDS)}"
    what = row["what"]
    if not isinstance(what, str) or not isinstance(row["unit"], str):
        return f"a row whose what and unit are {what!r} and {row['unit']!r}"
    if row["better"] not in ("higher", "lower"):
        return f"better = {row['better']!r} of {what!r}"
    if not isinstance(row["n"], int) or row["n"] < 0:
        return f"n = {row['n']!r} of {what!r}"
    numbers = [row["Q1"], row["median"], row["Q3"]]
    if row["n"] == 0 and numbers == [None] * 3:
        return None
    for number in numbers:
        if not isinstance(number, int | float) or not isfinite(number) or number <= 0:
            return f"the number {number!r} of {what!r}"
    if numbers != sorted(numbers):
        return f"quartiles out of order of {what!r}"
    return None


def compare(old: Record, new: Record) -> list[Row]:
    """Return a row for each measurement of both records, with the verdict.

    The verdict is "slower" or "faster" where the quartile ranges do not overlap and the medians
    differ by a factor beyond `MARGIN`; "" elsewhere.
    """
    old_rows = measured_rows(old)
    compared = []
    for key, row in measured_rows(new).items():
        if key not in old_rows:
            continue
        suite, what, unit = key
        before = old_rows[key]
        compared.append(
            {
                "suite": suite,
                "what": what,
                "unit": unit,
                "better": row["better"],
                "old": before["median"],
                "new": row["median"],
                "new / old": row["median"] / before["median"],
                "verdict": judge(before, row),
            }
        )
    return compared


def judge(old: Row, new: Row) -> str:
    """Return "slower", "faster" or ""."""
    is_above = new["Q1"] > old["Q3"] and new["median"] > old["median"] * MARGIN
    is_below = new["Q3"] < old["Q1"] and new["median"] * MARGIN < old["median"]
    if not is_above and not is_below:
        return ""
    is_better = is_above == (new["better"] == "higher")
    return "faster" if is_better else "slower"


def only_in_first(first: Record, second: Record) -> list[str]:
    """Return the names of measurements that the second record does not have."""
    others = measured_rows(second)
    return [": ".join(key[:2]) for key in measured_rows(first) if key not in others]


def measured_rows(record: Record) -> dict[tuple[str, str, str], Row]:
    """Return the rows that hold numbers, by suite, what and unit."""
    rows = {}
    for name, suite in record["suites"].items():
        for row in suite["rows"]:
            if row["n"] > 0:
                rows[name, row["what"], row["unit"]] = row
    return rows


def describe_changes(old: Record, new: Record) -> str:
    """Return what changed between two records, as lines of text."""
    lines = []
    if old["machine"] != new["machine"]:
        lines.append(f"Another machine or other versions: {old['machine']}; now {new['machine']}.")
    for row in compare(old, new):
        values = [format_value(row[name]) for name in ("old", "new", "new / old")]
        verdict = row["verdict"] or "no clear change"
        lines.append(
            f"{row['suite']}: {row['what']}: {values[0]} -> {values[1]} {row['unit']}, "
            f"new / old {values[2]} ({row['better']} is better): {verdict}"
        )
    lines += [f"only in the old record: {name}" for name in only_in_first(old, new)]
    lines += [f"only in the new record: {name}" for name in only_in_first(new, old)]
    return "\n".join(lines)


def has_slower(old: Record, new: Record) -> bool:
    """Return whether anything got slower."""
    return any(row["verdict"] == "slower" for row in compare(old, new))


def find_records(paths: Sequence[Path]) -> list[Path]:
    """Return the files of records: those named, and those in named folders in their order.

    Raises:
        ValueError: If a folder holds none.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            held = sorted(path.glob("*.json"))
            if not held:
                raise ValueError(f"{path} must hold records (*.json), got none")
            found += held
        else:
            found.append(path)
    return found


def as_page(records: Mapping[str, Record]) -> str:
    """Return the page of records: a section for each, with a table for each suite.

    Args:
        records: Records by the path of their file.
    """
    parts = [
        "# Latest measurements",
        "This page is written by `python benchmarks/run.py --page benchmarks/records`; "
        "[benchmarks](benchmarks.md)\n"
        "explains it, and the [glossary](glossary.md) its words. Every section is one record.",
    ]
    for file, record in records.items():
        load = "unknown" if record["load"] is None else f"{record['load']:.1f}"
        parts += [
            f"## {Path(file).stem}",
            f"- Date: {record['date']}\n- Command: `{record['command']}`\n"
            f"- Machine: {record['machine']}\n- Commit: `{record['commit']}`\n"
            f"- Load average at the end: {load}\n"
            f"- Record: `{file}`",
        ]
        for name, suite in record["suites"].items():
            parts += [f"### {name}", suite["about"], as_markdown(suite["rows"]).strip()]
    return "\n\n".join(parts) + "\n"
