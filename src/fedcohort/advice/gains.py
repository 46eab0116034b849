"""How much more one selector gets than another, and how far that is known.

Runs are played in pairs with the same rates of the clients, drawn from what may be true. Pairs tell
apart what is in doubt because the rates are, and what the chance of the rounds does.
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from fedcohort.advice.estimates import Interval, t975
from fedcohort.advice.selector_play import Played
from fedcohort.arrays import Floats
from fedcohort.students_t import t_tail


def played_difference(played: Mapping[str, Played], one: str, other: str) -> Interval:
    """Return how many more answers one selector gets in the runs that were played.

    Runs with the same rates are averaged first: they are no independent runs.

    Args:
        played: What came of each selector, by name.
        one: Name of the first.
        other: Name of the second.
    """
    return difference(same_rates(played[one].arrivals), same_rates(played[other].arrivals))


def gain_between(played: Mapping[str, Played], one: str, other: str) -> Interval:
    """Return how many more answers one selector gets, as far as the clients' rates are known.

    Args:
        played: What came of each selector, by name.
        one: Name of the first.
        other: Name of the second.
    """
    differences = played[one].arrivals - played[other].arrivals
    mean, doubt = mean_and_doubt(differences)
    if not doubt:
        return Interval(mean, mean, mean)
    margin = t975(len(differences) // 2 - 1) * doubt
    return Interval(mean, mean - margin, mean + margin)


def p_value_between(played: Mapping[str, Played], one: str, other: str) -> float:
    """Return the two-sided p-value that two selectors get as many answers.

    Args:
        played: What came of each selector, by name.
        one: Name of the first.
        other: Name of the second.
    """
    differences = played[one].arrivals - played[other].arrivals
    mean, doubt = mean_and_doubt(differences)
    if not doubt:
        return 0.0 if mean else 1.0
    degrees = max(len(differences) // 2 - 1, 1)
    return 2 * t_tail(abs(mean) / doubt, degrees)


def same_rates(values: Floats) -> Floats:
    """Return the means of the pairs of runs that have the same rates [S / 2].

    Args:
        values: Values of runs [S]; the second half has the rates of the first half again.

    Examples:
        >>> same_rates(np.array([1.0, 2.0, 3.0, 6.0])).tolist()
        [2.0, 4.0]
    """
    half = len(values) // 2
    return np.asarray((values[:half] + values[half : 2 * half]) / 2)


def difference(one: Floats, other: Floats) -> Interval:
    """Return the mean of paired differences with its 95 % interval.

    Args:
        one: Values of runs [S].
        other: Values of the same runs [S].

    Examples:
        >>> difference(np.array([2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0])).as_dict()
        {'value': 1.0, 'low': 1.0, 'high': 1.0}
    """
    differences = one - other
    mean = float(differences.mean())
    if len(differences) < 2:
        return Interval(mean, float("nan"), float("nan"))
    margin = t975(len(differences) - 1) * float(differences.std(ddof=1)) / sqrt(len(differences))
    return Interval(mean, mean - margin, mean + margin)


def mean_and_doubt(values: Floats) -> tuple[float, float]:
    """Return the mean of runs, and how far it is in doubt because the rates are.

    The second half of the runs has the rates of the first half again. What both halves share is
    what the rates do; the rest is the chance of the rounds, which only the mean suffers from.

    Args:
        values: Values of runs [S].

    Examples:
        >>> mean_and_doubt(np.array([1.0, 2.0, 3.0, 2.0, 1.0, 3.0]))  # shared: 1/2, chance: 4/5 / 6
        (2.0, 0.7958...)
    """
    half = len(values) // 2
    first = values[:half] - values[:half].mean()
    second = values[half : 2 * half] - values[half : 2 * half].mean()
    shared = float(first @ second) / max(half - 1, 1)
    variance = float(values.var(ddof=1))
    doubt = min(max(shared, 0.0), variance) + variance / len(values)
    return float(values.mean()), sqrt(doubt)
