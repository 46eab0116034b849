"""The terminal: one console, tables, JSON, and progress bars where there is a terminal."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, isnan
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fedcohort.reports.report import Report
from fedcohort.reports.tables import Rows, as_tables

PUBLISHED = "paper "  # how the column of a published value begins

console = Console()


def show(report: Report, figures: str) -> None:
    """Print a report, and the line about its figures."""
    console.print(report.title, style="bold", markup=False, highlight=False)
    for title, rows in report.tables.items():
        print_table([stack_published(row) for row in rows], title)
    for note in report.notes:
        say(note)
    if figures:
        say(figures)


def print_table(rows: Rows, title: str) -> None:
    """Print rows as a table, cut into several where the terminal is too narrow for it."""
    for table in as_tables(rows, console.width, title):
        console.print(table)


def stack_published(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with published values below ours, not beside them: a terminal is narrow."""
    published = {}
    for key, value in row.items():
        if key.startswith(PUBLISHED):
            published[key.removeprefix(PUBLISHED)] = value

    stacked = {}
    for key, value in row.items():
        if key in published:
            stacked[f"{key} paper"] = f"{value}\n{published[key]}"
        elif key.removeprefix(PUBLISHED) not in published:
            stacked[key] = value
    return stacked


def say(line: str) -> None:
    """Print a line as it is; a terminal may break it, a file does not."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def warn(line: str) -> None:
    """Print a line to stderr as it is."""
    Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print a table as JSON; nan becomes null, infinity the string "inf"."""
    print(json.dumps(_as_json(value), indent=2, ensure_ascii=False))


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, float):
        return _as_json_number(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _as_json_number(value: float) -> float | str | None:
    if isfinite(value):
        return value
    return None if isnan(value) else str(value)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback that shows how far each part is: its name, done, in all."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    is_silent = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_silent) as bar:
        tasks: dict[str, Any] = {}

        def on_progress(part: str, done: int, total: int) -> None:
            name = part.split(":")[0]
            if name not in tasks:
                tasks[name] = bar.add_task(part, total=total)
            bar.update(tasks[name], completed=done, total=total, description=part)

        yield on_progress
