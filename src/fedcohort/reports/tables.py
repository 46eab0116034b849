"""Tables for the terminal, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedcohort.reports.words import format_value

WRAP_FROM = 16  # characters from which a column may be wrapped
MAX_NAMING_COLUMNS = 3
Rows = Sequence[Mapping[str, Any]]


def as_tables(rows: Rows, width: int, title: str | None = None) -> list[Table]:
    """Return rows as a table, or as several if it is too wide for the terminal.

    Args:
        rows: The rows. The keys of the first one are the header.
        width: Width of the terminal in characters.
        title: Title of the first table.

    Returns:
        Tables with the columns in their order. Each of several tables begins with the columns
        that tell the rows apart.
    """
    keys = list(rows[0]) if rows else []
    if _fits(rows, keys, width):
        return [_table(rows, keys, title)]

    num_naming = _num_naming_columns(rows, keys)
    naming = keys[:num_naming]
    remaining = keys[num_naming:]
    tables: list[Table] = []
    while remaining or not tables:
        count = 1
        while count < len(remaining) and _fits(rows, naming + remaining[: count + 1], width):
            count += 1
        table_title = None if tables else title
        tables.append(_table(rows, naming + remaining[:count], table_title))
        remaining = remaining[count:]
    return tables


def _fits(rows: Rows, keys: Sequence[str], width: int) -> bool:
    """Return whether a table of these columns is narrow enough."""
    endless = Console(width=10_000)
    return endless.measure(_table(rows, keys)).minimum <= width


def _num_naming_columns(rows: Rows, keys: Sequence[str]) -> int:
    """Return how many of the first columns tell the rows apart, or one if three do not."""
    for count in range(1, MAX_NAMING_COLUMNS + 1):
        names = set()
        for row in rows:
            names.add(tuple(format_value(row.get(key)) for key in keys[:count]))
        if len(names) == len(rows):
            return count
    return 1


def _table(rows: Rows, keys: Sequence[str], title: str | None = None) -> Table:
    """Return these columns as a table: numbers to the right, the words of a header stacked."""
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    for place, key in enumerate(keys):
        header = key
        if place > 0:
            header = key.replace(" ", "\n")
        widest = _width(header)
        for row in rows:
            widest = max(widest, _width(format_value(row.get(key))))
        table.add_column(
            Text(header),
            justify=_side([row.get(key) for row in rows]),
            min_width=min(widest, WRAP_FROM),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(format_value(row.get(key))) for key in keys))
    return table


def _width(text: str) -> int:
    """Return the length of the longest line."""
    return max(len(line) for line in text.split("\n"))


def _side(values: Sequence[Any]) -> Literal["left", "right"]:
    """Return "left" for a column in which most values are words."""
    num_words = 0
    for value in values:
        if isinstance(value, str) and not value[:1].isdigit():
            num_words += 1
    return "left" if 2 * num_words > len(values) else "right"
