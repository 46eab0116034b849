"""Tables for the terminal, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedcohort.reports.words import format_value

WORDY = 16  # characters from which a column is wrapped
Rows = Sequence[Mapping[str, Any]]


def as_tables(rows: Rows, width: int, title: str | None = None) -> list[Table]:
    """Return a table with the keys of the first row as header; if it is too wide, several, each with who the rows are about."""
    keys = list(rows[0]) if rows else []
    endless = Console(width=10_000)
    whole = endless.measure(_table(rows, keys)).minimum <= width
    names = 1 if whole else _naming(rows, keys)
    first, rest = keys[:names], keys[names:]
    made: list[Table] = []
    while rest or not made:
        fitting = 1
        while (
            fitting < len(rest)
            and endless.measure(_table(rows, [*first, *rest[: fitting + 1]])).minimum <= width
        ):
            fitting += 1
        made.append(_table(rows, [*first, *rest[:fitting]], None if made else title))
        rest = rest[fitting:]
    return made


def _naming(rows: Rows, keys: Sequence[str]) -> int:
    """Return how many of the first columns tell the rows apart; one, if three do not."""
    apart = [
        n
        for n in (1, 2, 3)
        if len({tuple(format_value(row.get(key)) for key in keys[:n]) for row in rows}) == len(rows)
    ]
    return apart[0] if apart else 1


def _table(rows: Rows, keys: Sequence[str], title: str | None = None) -> Table:
    """Return these columns as a table: numbers to the right, words of a header stacked."""
    text = Text(title) if title else None
    table = Table(
        title=text,
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    for place, key in enumerate(keys):
        words = [isinstance(value := row.get(key), str) and not value[:1].isdigit() for row in rows]
        header = key if place == 0 else key.replace(" ", "\n")
        lines = [
            line
            for text in (header, *(format_value(row.get(key)) for row in rows))
            for line in text.split("\n")
        ]
        widest = max(len(line) for line in lines)
        side: Literal["left", "right"] = "left" if 2 * sum(words) > len(rows) else "right"
        table.add_column(Text(header), justify=side, min_width=min(widest, WORDY), overflow="fold")
    for row in rows:
        table.add_row(*(Text(format_value(row.get(key))) for key in keys))
    return table
