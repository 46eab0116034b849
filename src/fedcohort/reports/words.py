"""A value as a reader wants it."""

from typing import Any


def shown(value: Any) -> str:
    """Return a value as a reader wants it: three digits for small numbers, thousands apart for large ones."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
    return str(value)


def counted(number: int, thing: str) -> str:
    """Return so many things: 1 seed, 2 seeds."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
