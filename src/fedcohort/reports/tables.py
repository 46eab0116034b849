"""Tables for the terminal, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from fedcohort.reports.words import shown

WORDY = 16  # characters from which a column is wrapped


def as_table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> Table:
    """Return a table with the keys of the first row as header; numbers to the right, words of a header stacked."""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for place, key in enumerate(rows[0] if rows else {}):
        words = [isinstance(value := row.get(key), str) and not value[:1].isdigit() for row in rows]
        header = key if place == 0 else key.replace(" ", "\n")
        short = max(len(shown(row.get(key))) for row in rows) < WORDY
        table.add_column(header, justify="left" if 2 * sum(words) > len(rows) else "right", no_wrap=short, overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row.values()))
    return table
