"""Numbers with intervals, and how they are found by resampling rounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, isfinite, nan, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, Ints
from fedcohort.students_t import t_limit

LEVEL = 0.95  # of every interval
Z975 = 1.959964
MOST_TIMES_MORE = 100  # times the rounds of a log; how many more it needs beyond that is a guess


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; nan where nothing is known.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end.

    Examples:
        >>> Interval(0.5, 0.25, 0.75).is_above(0.2)
        True
    """

    value: float
    low: float
    high: float

    def is_above(self, bound: float) -> bool:
        """Return whether the whole interval lies above a bound."""
        return self.low > bound

    def within(self, least: float, most: float) -> "Interval":
        """Return the interval cut to what the estimated number can be; nan stays nan.

        Args:
            least: Smallest value that is possible.
            most: Largest value.
        """
        return Interval(*np.clip([self.value, self.low, self.high], least, most).tolist())

    def as_dict(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return {"value": self.value, "low": self.low, "high": self.high}


UNKNOWN = Interval(nan, nan, nan)


def from_draws(draws: Floats, value: float | None = None) -> Interval:
    """Return the interval of draws from a posterior or a bootstrap.

    Without draws, or with draws that are not finite, it is `UNKNOWN`.

    Args:
        draws: The draws [D].
        value: The estimate; by default the mean of the draws.
    """
    if not draws.size or not np.isfinite(draws).all():
        return UNKNOWN
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    middle = float(draws.mean()) if value is None else value
    return Interval(middle, float(low), float(high))


def t975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, infinite for no degree of freedom.

    Examples:
        >>> round(t975(1), 3), round(t975(30), 3)
        (12.706, 2.042)
    """
    return t_limit(0.025, degrees) if degrees > 0 else inf


def bootstrap_weights(rounds: int, draws: int, block: int, rng: np.random.Generator) -> Floats:
    """Return how often each round is taken in each resample; blocks of rounds stay together.

    Args:
        rounds: Number of rounds, T.
        draws: Number of resamples, B.
        block: Rounds that stay together; 1 takes rounds one by one. Blocks go around the end.
        rng: Source of randomness.

    Returns:
        Counts [B, T], each row with the sum T.

    Examples:
        >>> weights = bootstrap_weights(6, 3, 2, np.random.default_rng(0))
        >>> weights.shape, weights.sum(axis=1).tolist()
        ((3, 6), [6.0, 6.0, 6.0])
    """
    picks = bootstrap_rounds(rounds, draws, block, rng)
    weights = np.zeros((draws, rounds))
    for row, taken in zip(weights, picks, strict=True):
        row += np.bincount(taken, minlength=rounds)
    return weights


def bootstrap_rounds(
    rounds: int, draws: int, block: int, rng: np.random.Generator, length: int | None = None
) -> Ints:
    """Return the rounds of each resample in order, [B, length].

    Args:
        rounds: Number of rounds to draw from, T.
        draws: Number of resamples, B.
        block: Rounds that stay together. Blocks go around the end.
        rng: Source of randomness.
        length: Rounds of a resample; by default T.
    """
    length = rounds if length is None else length
    starts = rng.integers(0, rounds, size=(draws, ceil(length / block)))
    positions = starts[:, :, None] + np.arange(block)
    return positions.reshape(draws, -1)[:, :length] % rounds


def block_length(rounds: int, memory: float) -> int:
    """Return how many rounds a block needs, so that what happens in one hardly reaches others.

    Args:
        rounds: Number of rounds, T.
        memory: Rounds after which failures are forgotten.
    """
    wanted = max(rounds ** (1 / 3), 3 * memory)
    return int(min(max(1, ceil(wanted)), max(1, rounds // 5)))


def widened(interval: Interval, blocks: int) -> Interval:
    """Return an interval that allows for how few blocks of rounds there are.

    Args:
        interval: An interval of a bootstrap.
        blocks: Number of independent blocks.
    """
    if blocks < 2:
        return Interval(interval.value, nan, nan)
    factor = t975(blocks - 1) / Z975 * sqrt(blocks / (blocks - 1))
    low = interval.value - factor * (interval.value - interval.low)
    high = interval.value + factor * (interval.high - interval.value)
    return Interval(interval.value, low, high)


def ratio_interval(above: Floats, below: Floats, weights: Floats, block: int) -> Interval:
    """Return the ratio of two sums over rounds with its bootstrap interval.

    Args:
        above: What is counted above, per round [T].
        below: What is counted below, per round [T].
        weights: Resamples [B, T] of `bootstrap_weights`.
        block: Rounds per block of the resamples.
    """
    total = float(below.sum())
    if total <= 0:
        return UNKNOWN
    sums = weights @ below
    draws = np.divide(weights @ above, sums, out=np.zeros(len(sums)), where=sums > 0)
    interval = from_draws(draws, float(above.sum()) / total)
    return widened(interval, len(below) // block)


def share_interval(above: Floats, below: Floats, weights: Floats, block: int) -> Interval:
    """Return a share with its bootstrap interval, which ends at 0 and at 1.

    Rounds that all have the share 0 or 1 have no spread to resample. A share that would give such
    rounds in one log of forty is then the other end of the interval.

    Args:
        above: What is counted, per round [T].
        below: Of how many, per round [T].
        weights: Resamples [B, T] of `bootstrap_weights`.
        block: Rounds per block of the resamples.

    Examples:
        >>> ones = np.ones(10)  # 0.69 ** 10 is 1 / 40
        >>> share_interval(ones, ones, np.ones((1, 10)), block=1).as_dict()
        {'value': 1.0, 'low': 0.69..., 'high': 1.0}
    """
    interval = ratio_interval(above, below, weights, block)
    # Answers of one round may depend on each other: a round counts as one observation.
    rounds = max(1, int((below > 0).sum()))
    rarest = ((1 - LEVEL) / 2) ** (1 / rounds)
    if interval.value == 0:
        return Interval(0.0, 0.0, 1 - rarest)
    if interval.value == 1:
        return Interval(1.0, rarest, 1.0)
    return interval.within(0.0, 1.0)


def sum_by(place: Ints, values: npt.ArrayLike, size: int) -> Floats:
    """Return the sums of values that belong to the same place.

    Args:
        place: Place of each value, from 0 [n].
        values: The values [n].
        size: Number of places.

    Examples:
        >>> sum_by(np.array([0, 2, 2]), [1.0, 2.0, 3.0], size=3).tolist()
        [1.0, 0.0, 5.0]
    """
    sums = np.bincount(place, weights=np.asarray(values, dtype=np.float64), minlength=size)
    return sums.astype(np.float64)


def more_rounds(rounds: int, width: float, wanted: float) -> int | None:
    """Return how many more rounds narrow an interval to a width; None if that cannot be said.

    The width of an interval falls with the square root of the number of rounds, but that is no
    guide to a log more than a hundred times as long.

    Args:
        rounds: Number of rounds so far.
        width: Width of the interval now; nan or infinite if it is unknown.
        wanted: Width that would answer the question.

    Examples:
        >>> more_rounds(100, width=0.2, wanted=0.1)
        300
    """
    if not isfinite(width) or not wanted > 0:
        return None
    times_more = (width / wanted) ** 2 - 1
    if times_more > MOST_TIMES_MORE:
        return None
    return max(0, ceil(rounds * times_more))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays as lists, nan and infinity as None."""
    if isinstance(value, Interval):
        return plain(value.as_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
