"""The parameters of worlds: each has a name, a default and bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from fedcohort.checks import (
    LARGEST_FLOAT,
    MAX_COUNT,
    check_choice,
    check_int,
    check_range,
    parse_number,
    shown,
)


class MissingData(ValueError):
    """A world needs to know the clients' data or model, and nobody told it."""


@dataclass(frozen=True)
class Option:
    """One parameter of a world.

    Attributes:
        default: Its value if none is given; None if the world works it out.
        low: Smallest value allowed.
        high: Largest value allowed. Infinity stands for any finite value, and for 2**31 - 1 if
            it must be a whole number.
        is_whole: Whether it must be a whole number.
    """

    default: float | None
    low: float = 0.0
    high: float = inf
    is_whole: bool = False


FAILURE = Option(0.0, 0.0, 1.0)
"""How often a client that is online fails nevertheless, after it was asked."""


def read_options(
    world: str, given: Mapping[str, float], declared: Mapping[str, Option]
) -> dict[str, float]:
    """Return the value of every option of a world.

    Args:
        world: Name of the world, for messages.
        given: Values by name.
        declared: The world's options by name.

    Returns:
        The given values and the defaults of the others. An option that is not given and has no
        default is left out.

    Raises:
        ValueError: If the world has no such option, or a value is out of bounds.

    Examples:
        >>> from fedcohort.world.options import Option, read_options
        >>> read_options("markov", {}, {"cycle": Option(50.0, low=2.0)})
        {'cycle': 50.0}
    """
    for name in given:
        if not declared:
            raise ValueError(f"world {world!r} must get no option, because it has none, got {name}")
        check_choice(f"option of the world {world!r}", name, declared)

    values: dict[str, float] = {}
    for name, option in declared.items():
        if name in given:
            values[name] = _check_value(f"world option {name}", given[name], option)
        elif option.default is not None:
            values[name] = option.default
    return values


def parse_options(texts: Sequence[str]) -> dict[str, float]:
    """Return options that are written `name=value`, by name.

    Args:
        texts: One text per option.

    Returns:
        The values in the order of the names, so that the order of the texts does not matter.

    Raises:
        ValueError: If a text is no such pair, or an option stands there twice.

    Examples:
        >>> from fedcohort.world.options import parse_options
        >>> parse_options(["off=20", "failure=0.1"])
        {'failure': 0.1, 'off': 20.0}
    """
    values: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        name = name.strip()
        value = parse_number(number)
        if not name or not abs(value) < inf:  # nan is not below infinity
            raise ValueError(f"world_options must be name=number each, got {shown(text)}")
        if name in values:
            raise ValueError(f"world_options must name {name} once, got it twice")
        values[name] = value
    return dict(sorted(values.items()))


def format_options(values: Mapping[str, float]) -> tuple[str, ...]:
    """Return options as texts that `parse_options` reads, whole numbers without a point.

    Examples:
        >>> from fedcohort.world.options import format_options
        >>> format_options({"failure": 0.1, "off": 20.0})
        ('failure=0.1', 'off=20')
    """
    return tuple(f"{name}={shortest(value)}" for name, value in values.items())


def shortest(value: float) -> str:
    """Return a number as the shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _check_value(name: str, value: Any, option: Option) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {shown(value)}")
    if option.is_whole:
        return _check_whole(name, value, option)
    if option.high == inf and value < option.low:
        raise ValueError(f"{name} must be at least {option.low:g}, got {shown(value)}")
    return check_range(name, value, option.low, min(option.high, LARGEST_FLOAT))


def _check_whole(name: str, value: Any, option: Option) -> int:
    """Return a whole number; without a bound of its own, it is one of rounds or clients."""
    if value % 1 != 0:  # nan and infinity leave nan
        raise ValueError(f"{name} must be a whole number, got {shown(value)}")
    high = MAX_COUNT if option.high == inf else int(option.high)
    if value > high:  # written as it was given: 1e308 has 309 digits
        raise ValueError(f"{name} must be a whole number at most {high}, got {shown(value)}")
    return check_int(name, int(value), int(option.low), high)
