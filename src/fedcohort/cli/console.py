"""The terminal: one console, reports, and progress bars that are silent where the output is not a terminal."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, isnan
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fedcohort.reports.report import Report
from fedcohort.reports.tables import Rows, as_tables

console = Console()


def show(report: Report, figures: str) -> None:
    """Print a report, and what is to be said of its figures."""
    console.print(report.title, style="bold", markup=False, highlight=False)
    for title, rows in report.tables.items():
        print_table([stacked(row) for row in rows], title)
    for line in (*report.notes, *([figures] if figures else [])):
        say(line)


def print_table(rows: Rows, title: str) -> None:
    """Print rows as a table, cut into several where the terminal is too narrow for it."""
    for table in as_tables(rows, console.width, title):
        console.print(table)


def stacked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose published values stand below ours, not beside them: a terminal is narrow."""
    paper = {
        key.removeprefix("paper "): value for key, value in row.items() if key.startswith("paper ")
    }
    return {
        f"{key} paper" if key in paper else key: f"{value}\n{paper[key]}" if key in paper else value
        for key, value in row.items()
        if key.removeprefix("paper ") not in paper or key in paper
    }


def say(line: str) -> None:
    """Print a line as it is; a terminal may break it, a file does not."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print plain values as one JSON document: paths as text, what is not known as null, what is never reached as "inf"."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float):
        return value if isfinite(value) else None if isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows how far each part is: name, done, in all."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        tasks: dict[str, Any] = {}

        def tell(part: str, done: int, total: int) -> None:
            name = part.split(":")[0]
            if name not in tasks:
                tasks[name] = bar.add_task(part, total=total)
            bar.update(tasks[name], completed=done, total=total, description=part)

        yield tell
