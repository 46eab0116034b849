"""Tables for the terminal, from rows of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.table import Table


def as_table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> Table:
    """Return a table with the keys of the first row as header; numbers to the right, in few digits."""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE, pad_edge=False)
    for place, (key, value) in enumerate((rows[0] if rows else {}).items()):
        left = isinstance(value, str) and not value[:1].isdigit()
        table.add_column(key, justify="left" if left else "right", no_wrap=place == 0, overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row.values()))
    return table


def shown(value: Any) -> str:
    """Return a value as a reader wants it: four digits for small numbers, thousands apart for large ones."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
