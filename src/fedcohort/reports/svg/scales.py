"""From values to places in a drawing: scales, and ticks at round numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

STEPS = (1, 2, 2.5, 5, 10)  # of ticks, times a power of ten
ALMOST = 1e-9  # a tick at an end of the axis is inside, whatever rounding does


@dataclass(frozen=True)
class Scale:
    """A linear map from values to places.

    Attributes:
        low: The value at `start`.
        high: The value at `end`, above `low`.
        start: Place of the lowest value.
        end: Place of the highest one. It is smaller than `start` for an axis that points up.

    Examples:
        >>> Scale(low=0, high=2, start=100, end=0).place(0.5)
        75.0
    """

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the place of one value."""
        return float(self.places(np.array([value]))[0])

    def places(self, values: npt.ArrayLike) -> Floats:
        """Return the places of values [n]."""
        share = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.asarray(self.start + share * (self.end - self.start))


def value_range(values: Iterable[npt.ArrayLike], *, with_zero: bool = False) -> tuple[float, float]:
    """Return the lowest and the highest finite value, a little apart if they are the same.

    Args:
        values: Arrays of values. They may hold nan.
        with_zero: Whether 0 is always inside.
    """
    known = [0.0] if with_zero else []
    for array in values:
        flat = np.asarray(array, dtype=np.float64).ravel()
        flat = flat[np.isfinite(flat)]
        if flat.size:
            known += [float(flat.min()), float(flat.max())]
    if not known:
        return 0.0, 1.0
    low = min(known)
    high = max(known)
    if high > low:
        return low, high
    if low == 0.0:  # shares and counts, such as of a run in which nobody answered
        return 0.0, 1.0
    margin = 0.05 * abs(low)
    if with_zero:
        return min(low, 0.0), high + margin
    return low - margin, high + margin


def ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """Return round numbers between two values, about as many as wanted.

    Args:
        low: The lowest value.
        high: The highest value, above `low`.
        count: Number of steps that would be right.
        whole: Whether only whole numbers are wanted, as for rounds.

    Examples:
        >>> ticks(0.13, 0.96, count=4)
        [0.25, 0.5, 0.75]
        >>> ticks(1, 4, count=6, whole=True)
        [1.0, 2.0, 3.0, 4.0]
    """
    step = tick_step(low, high, count, whole=whole)
    first = ceil(low / step - ALMOST)
    last = floor(high / step + ALMOST)
    return [float(f"{place * step:.10g}") for place in range(first, last + 1)]


def tick_step(low: float, high: float, count: int, *, whole: bool = False) -> float:
    """Return the distance of ticks: 1, 2, 2.5 or 5 times a power of ten."""
    rough = (high - low) / max(1, count)
    if not isfinite(rough) or rough <= 0 or (whole and rough <= 1):
        return 1.0
    power: float = 10.0 ** floor(log10(rough))
    for step in STEPS:
        is_allowed = not whole or (step * power).is_integer()
        if is_allowed and step * power >= rough * (1 - ALMOST):
            break
    return float(step * power)


def tick_labels(values: list[float]) -> list[str]:
    """Return ticks as text, all with the same number of digits after the point.

    Examples:
        >>> tick_labels([0.0, 0.25, 0.5]), tick_labels([0.0, 5000.0, 10000.0])
        (['0.00', '0.25', '0.50'], ['0', '5,000', '10,000'])
    """
    digits = 0
    for value in values:
        text = f"{value:.10g}"
        if "e" in text:
            return [f"{one:.3g}" for one in values]
        if "." in text:
            digits = max(digits, len(text.split(".")[1]))
    return [f"{value:,.{digits}f}" for value in values]
