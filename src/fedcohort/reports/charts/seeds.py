"""Curves over seeds: the mean, the standard deviation, and few enough points to draw."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.reports.findings import SchemeResults

NUM_MOMENTS = 150  # points of a curve over time
SPREAD = "Mean ± standard deviation over seeds."

Groups: TypeAlias = Mapping[str, Mapping[str, SchemeResults]]  # by kind of run and name


class Curve(NamedTuple):
    """A curve over seeds.

    Attributes:
        x: [n] rounds or seconds.
        mean: [n] mean over seeds.
        sd: [n] standard deviation over seeds, nan for fewer than two seeds.
    """

    x: Floats | Ints
    mean: Floats
    sd: Floats


NO_CURVE = Curve(np.empty(0), np.empty(0), np.empty(0))


def with_spread(caption: str, groups: Groups, spread: str) -> str:
    """Return a caption with a sentence about the spread over seeds, if there are several.

    Args:
        caption: What the chart shows.
        groups: Schemes by kind of run.
        spread: How the chart shows the spread.
    """
    for schemes in groups.values():
        if any(len(scheme.seeds) > 1 for scheme in schemes.values()):
            return f"{caption} {spread}"
    return caption


def evenly_spread(count: int, limit: int) -> Ints:
    """Return at most `limit` of the indices below `count`, with the first and the last.

    Args:
        count: Number of things to choose from.
        limit: Largest number to choose.

    Examples:
        >>> evenly_spread(count=101, limit=3).tolist()
        [0, 50, 100]
    """
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(np.int64))


def mean_and_sd(values: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation over seeds, without the nan.

    Args:
        values: [S, n] values of S seeds, nan where a seed has none.

    Returns:
        Mean [n], nan where no seed has a value. Standard deviation [n], nan where fewer than two
        seeds have one.
    """
    missing = np.isnan(values)
    count = (~missing).sum(axis=0)
    nothing = np.full(count.shape, np.nan)

    total = np.where(missing, 0.0, values).sum(axis=0)
    mean = np.divide(total, count, out=nothing.copy(), where=count > 0)

    squares = np.where(missing, 0.0, values - mean) ** 2
    variance = np.divide(squares.sum(axis=0), count - 1, out=nothing.copy(), where=count > 1)
    return mean, np.sqrt(variance)


def played_furthest(values: npt.NDArray[Any]) -> Bools:
    """Return which seeds were played furthest, [S].

    Args:
        values: [S, T] values of S seeds, nan where a seed has none.
    """
    recorded = ~np.isnan(values)
    last_from_end = np.argmax(recorded[:, ::-1], axis=1)
    length = np.where(recorded.any(axis=1), values.shape[1] - last_from_end, 0)
    return np.asarray(length == length.max())


def curve_over_rounds(values: npt.NDArray[Any]) -> Curve:
    """Return a curve over the rounds in which there are values, counted from 1.

    Only the seeds that were played furthest count. The mean would otherwise jump where the
    shorter runs end.

    Args:
        values: [S, T] values of S seeds, nan where a seed has none.
    """
    furthest = values[played_furthest(values)]
    rounds = np.flatnonzero(~np.isnan(furthest).all(axis=0))
    mean, sd = mean_and_sd(furthest[:, rounds])
    return Curve(rounds + 1, mean, sd)


def accuracy_over_seconds(scheme: SchemeResults) -> Curve:
    """Return the accuracy over virtual seconds, until the first seed has no more rounds.

    At each moment the accuracy is the one tested last.

    Args:
        scheme: Results with accuracy and seconds. Without them the curve has no points.
    """
    if scheme.accuracy is None or scheme.seconds is None:
        return NO_CURVE

    times = []
    accuracies = []
    for accuracy, seconds in zip(scheme.accuracy, scheme.seconds, strict=True):
        tested = ~np.isnan(accuracy)
        if not tested.any():
            return NO_CURVE
        times.append(np.cumsum(seconds)[tested])
        accuracies.append(accuracy[tested])

    first = max(time[0] for time in times)
    last = min(time[-1] for time in times)
    num_rounds = scheme.accuracy.shape[1]
    moments = np.linspace(first, max(first, last), min(NUM_MOMENTS, num_rounds))

    known = np.empty((len(times), moments.size))
    for seed, (time, accuracy) in enumerate(zip(times, accuracies, strict=True)):
        # The factor makes up for rounding: a test at a moment counts at that moment.
        tests_so_far = np.searchsorted(time, moments * (1 + 1e-12), side="right")
        known[seed] = accuracy[np.maximum(tests_so_far - 1, 0)]

    mean, sd = mean_and_sd(known)
    return Curve(moments, mean, sd)
