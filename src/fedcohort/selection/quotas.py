"""Fairness quotas: round -> fraction phi of k/K that every client is granted, so that the floor is sigma_t = phi k/K."""

from collections.abc import Callable
from math import cos, pi

from fedcohort.checks import check_int, check_range

Quota = Callable[[int], float]


def constant(fraction: float) -> Quota:
    """Grant the same fraction in every round (E3CS-0, E3CS-0.5, E3CS-0.8)."""
    fraction = check_range("fraction", fraction, 0.0, 1.0)
    return lambda round: fraction


def step(at: int, before: float = 0.0, after: float = 1.0) -> Quota:
    """Switch from one fraction to another at a round (E3CS-inc: at = T // 4)."""
    at = check_int("at", at, 0)
    before, after = check_range("before", before, 0.0, 1.0), check_range("after", after, 0.0, 1.0)
    return lambda round: before if round < at else after


def linear(horizon: int, start: float = 0.0, end: float = 1.0) -> Quota:
    """Move in a straight line from start, in round 0, to end, in round horizon - 1 and after."""
    return _ramp(horizon, start, end, lambda done: done)


def cosine(horizon: int, start: float = 0.0, end: float = 1.0) -> Quota:
    """Move from start to end along half a cosine: slowly at both ends."""
    return _ramp(horizon, start, end, lambda done: (1 - cos(pi * done)) / 2)


def _ramp(horizon: int, start: float, end: float, shape: Callable[[float], float]) -> Quota:
    last = max(check_int("horizon", horizon, 1) - 1, 1)
    start, end = check_range("start", start, 0.0, 1.0), check_range("end", end, 0.0, 1.0)
    return lambda round: start + (end - start) * shape(min(round / last, 1.0))
