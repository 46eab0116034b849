"""Argument checks: every message says the name, the bound and the value."""

import math
from collections.abc import Collection
from difflib import get_close_matches
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

MOST = float(np.finfo(np.float64).max)
MAX_COUNT = 2**31 - 1  # of anything that is counted: more fits no memory


def check_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return value as an int if it is a whole number within the bounds."""
    try:
        number = index(value)
    except TypeError:
        number = low - 1
    bound = (
        f"at least {low}"
        if high is None or (high == MAX_COUNT and number < low)
        else f"between {low} and {high}"
    )
    if isinstance(value, bool | np.bool_) or number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be a whole number {bound}, got {value!r}")
    return number


def check_range(name: str, value: Any, low: float, high: float) -> float:
    """Return value as a float if low <= value <= high; nan is not."""
    number = _number(value)
    if not low <= number <= high:
        raise ValueError(f"{name} must be between {low} and {high}, got {value!r}")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return value as a float if it is finite and above zero."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return number


def _number(value: Any) -> float:
    """Return a number as a float, nan for what is none: words and truth values are not."""
    try:
        return math.nan if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def check_choice(name: str, value: str, options: Collection[str]) -> str:
    """Return value if it is one of the options; otherwise name the nearest."""
    if isinstance(value, str) and value in options:
        return value
    near = get_close_matches(
        str(value).lower(), [option.lower() for option in options], n=1, cutoff=0.5
    )
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}{hint}")


def check_array(
    name: str, values: npt.ArrayLike, shape: tuple[int, ...], low: float, high: float
) -> Floats:
    """Return values as float64 of this shape, every entry within the bounds; nan is not."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers of shape {shape}, got {values!r}") from None
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.size and not (
        max(low, -MOST) <= array.min() and array.max() <= min(high, MOST)
    ):  # nan compares false
        bad = ~((array >= low) & (array <= high) & np.isfinite(array))
        raise ValueError(f"{name} must be {_bound(low, high)}, got {array[bad][0]}{_where(bad)}")
    return array


def _bound(low: float, high: float) -> str:
    if math.isfinite(high):
        return f"between {low} and {high}"
    return f"finite and at least {low}" if math.isfinite(low) else "finite"


def _where(bad: npt.NDArray[np.bool_]) -> str:
    position = [int(i) for i in np.argwhere(bad)[0]]
    return f" at position {position[0] if len(position) == 1 else position}" if position else ""
