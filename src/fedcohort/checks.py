"""Argument checks: every message says the name of the argument, its bound and its value."""

import math
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

LARGEST_FLOAT = float(np.finfo(np.float64).max)
MAX_SHOWN = 500  # characters of a value in a message
MAX_COUNT = 2**31 - 1  # of anything that is counted: more fits no memory


def check_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return value as an int if it is a whole number within the bounds.

    Args:
        name: Name of the argument, for the message.
        value: Value to check; bools are no numbers.
        low: Smallest number allowed.
        high: Largest number allowed, if there is one.

    Returns:
        The number.

    Raises:
        ValueError: If the value is no whole number or out of bounds.

    Examples:
        >>> check_int("rounds", 3, 1)
        3
        >>> check_int("rounds", 0, 1)
        Traceback (most recent call last):
        ValueError: rounds must be a whole number at least 1, got 0
    """
    try:
        number = index(value)
    except TypeError:
        number = low - 1  # out of bounds, whatever the bounds are
    is_bool = isinstance(value, bool | np.bool_)
    is_above = high is not None and number > high
    if not is_bool and number >= low and not is_above:
        return number

    bound = f"between {low} and {high}"
    if high is None or (high == MAX_COUNT and number < low):
        bound = f"at least {low}"
    raise ValueError(f"{name} must be a whole number {bound}, got {shown(value)}")


def check_range(name: str, value: Any, low: float, high: float) -> float:
    """Return value as a float if low <= value <= high; nan is not.

    Args:
        name: Name of the argument, for the message.
        value: Value to check.
        low: Smallest number allowed.
        high: Largest number allowed.

    Returns:
        The number.

    Raises:
        ValueError: If the value is no number or out of bounds.

    Examples:
        >>> check_range("quota", 1.5, 0.0, 1.0)
        Traceback (most recent call last):
        ValueError: quota must be between 0.0 and 1.0, got 1.5
    """
    number = _as_float(value)
    if not low <= number <= high:
        raise ValueError(f"{name} must be between {low} and {high}, got {shown(value)}")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return value as a float if it is finite and above zero.

    Args:
        name: Name of the argument, for the message.
        value: Value to check.

    Returns:
        The number.

    Raises:
        ValueError: If the value is no number, not finite or not above zero.

    Examples:
        >>> check_positive("eta", 0)
        Traceback (most recent call last):
        ValueError: eta must be a finite number above 0, got 0
    """
    number = _as_float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {shown(value)}")
    return number


def check_choice(
    name: str, value: str, options: Collection[str], synonyms: Mapping[str, str] | None = None
) -> str:
    """Return value if it is one of the options; otherwise suggest the nearest.

    Args:
        name: Name of the argument, for the message.
        value: Value to check.
        options: Values allowed.
        synonyms: Options by other words for them, to suggest.

    Returns:
        The value.

    Raises:
        ValueError: If the value is none of the options.

    Examples:
        >>> check_choice("ties", "oder", ("random", "order"))
        Traceback (most recent call last):
        ValueError: ties must be one of random, order, got 'oder'; did you mean 'order'?
    """
    if isinstance(value, str) and value in options:
        return value
    lower_case = [option.lower() for option in options]
    given = value if isinstance(value, str) else shown(value)
    word = given[:MAX_SHOWN].lower()
    nearest = get_close_matches(word, lower_case, n=1, cutoff=0.5)
    if synonyms is not None and synonyms.get(word) in options:
        nearest = [synonyms[word]]
    hint = ""
    if nearest:
        hint = f"; did you mean {nearest[0]!r}?"
    raise ValueError(f"{name} must be one of {', '.join(options)}, got {shown(value)}{hint}")


def check_array(
    name: str, values: npt.ArrayLike, shape: tuple[int, ...], low: float, high: float
) -> Floats:
    """Return values as float64 if they have this shape and lie within the bounds.

    Args:
        name: Name of the argument, for the message.
        values: Values to check.
        shape: Shape that they must have.
        low: Smallest number allowed.
        high: Largest number allowed; nan and infinities are never allowed.

    Returns:
        The values, of the given shape.

    Raises:
        ValueError: If the values are no numbers, or of another shape, or out of bounds.

    Examples:
        >>> check_array("rates", [0.5, 1.5], (2,), 0.0, 1.0)
        Traceback (most recent call last):
        ValueError: rates must be between 0.0 and 1.0, got 1.5 at position 1
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers of shape {shape}, got {shown(values)}") from None
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.size == 0:
        return array

    # The minimum and maximum are nan if any value is, and nan compares false.
    is_above = array.min() >= max(low, -LARGEST_FLOAT)
    is_below = array.max() <= min(high, LARGEST_FLOAT)
    if not (is_above and is_below):
        bad = ~((array >= low) & (array <= high) & np.isfinite(array))
        position = _describe_position(bad)
        raise ValueError(f"{name} must be {_describe(low, high)}, got {array[bad][0]}{position}")
    return array


def parse_number(text: str) -> float:
    """Return the number that is written in a text or a file, and nan if it is none.

    Python alone reads `1_0` as 10, and digits of other scripts as digits: here they are mistakes.

    Args:
        text: The text; `inf` and `nan` count as numbers.

    Examples:
        >>> parse_number("1e3"), parse_number("inf"), parse_number("1_0")
        (1000.0, inf, nan)
    """
    if "_" in text or not text.isascii():
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def shown(value: Any) -> str:
    """Return a value for a message: not too long, and whole numbers of any size.

    Examples:
        >>> shown("oder")
        "'oder'"
        >>> shown(10**5000)
        'a whole number of 16610 bits'
    """
    try:
        text = repr(value).replace("\n", " ")  # arrays have several lines
    except ValueError:  # Python writes no whole number of more than 4300 digits
        if isinstance(value, int):
            return f"a whole number of {value.bit_length()} bits"
        return f"a {type(value).__name__} with a huge number"
    if len(text) > MAX_SHOWN:
        return f"{text[:MAX_SHOWN]}..."
    return text


def one_line(error: Exception) -> str:
    r"""Return what an error says in one line, or its kind if it says nothing.

    Examples:
        >>> one_line(ValueError("two\nlines"))
        'two lines'
    """
    return " ".join(str(error).split()) or type(error).__name__


def _as_float(value: Any) -> float:
    """Return a number as a float, and nan for anything else, such as words and bools."""
    if isinstance(value, str | bytes | bool | np.bool_):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _describe(low: float, high: float) -> str:
    if math.isfinite(high):
        return f"between {low} and {high}"
    if math.isfinite(low):
        return f"finite and at least {low}"
    return "finite"


def _describe_position(bad: npt.NDArray[np.bool_]) -> str:
    """Return where the first bad value is. A single number has no position."""
    position = np.argwhere(bad)[0].tolist()
    if not position:
        return ""
    if len(position) == 1:
        return f" at position {position[0]}"
    return f" at position {position}"
