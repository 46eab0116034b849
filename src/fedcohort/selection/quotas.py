"""Fairness quotas: the fraction phi of a fair share k/K that every client is guaranteed.

A quota is a function from the round to phi; the floor of E3CS is sigma_t = phi k/K.
"""

from collections.abc import Callable
from math import cos, log, pi, sqrt

from fedcohort.checks import MAX_COUNT, check_int, check_positive, check_range

Quota = Callable[[int], float]


def constant(fraction: float) -> Quota:
    """Guarantee the same fraction in every round (E3CS-0, E3CS-0.5, E3CS-0.8).

    Args:
        fraction: The fraction, in [0, 1].

    Returns:
        The quota.

    Raises:
        ValueError: If the fraction is out of bounds.

    Examples:
        >>> constant(0.5)(7)
        0.5
    """
    fraction = check_range("fraction", fraction, 0.0, 1.0)
    return lambda round: fraction


def step(at: int, before: float = 0.0, after: float = 1.0) -> Quota:
    """Switch from one fraction to another at a round (E3CS-inc: at = T // 4).

    Args:
        at: First round with the second fraction.
        before: Fraction until then, in [0, 1].
        after: Fraction from then on, in [0, 1].

    Returns:
        The quota.

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> quota = step(at=10)
        >>> quota(9), quota(10)
        (0.0, 1.0)
    """
    at = check_int("at", at, 0)
    before = check_range("before", before, 0.0, 1.0)
    after = check_range("after", after, 0.0, 1.0)
    return lambda round: before if round < at else after


def linear(horizon: int, start: float = 0.0, end: float = 1.0) -> Quota:
    """Move in a straight line from one fraction to another.

    Args:
        horizon: Number of rounds; from round horizon - 1 on, the fraction is `end`.
        start: Fraction in round 0, in [0, 1].
        end: Last fraction, in [0, 1].

    Returns:
        The quota.

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> linear(5)(2)
        0.5
    """
    return _ramp(horizon, start, end, lambda progress: progress)


def cosine(horizon: int, start: float = 0.0, end: float = 1.0) -> Quota:
    """Move from one fraction to another along half a cosine: slowly at both ends.

    Args:
        horizon: Number of rounds; from round horizon - 1 on, the fraction is `end`.
        start: Fraction in round 0, in [0, 1].
        end: Last fraction, in [0, 1].

    Returns:
        The quota.

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> round(cosine(5)(1), 3)
        0.146
    """
    return _ramp(horizon, start, end, lambda progress: (1 - cos(pi * progress)) / 2)


def best_rate(num_clients: int, spare: float) -> float:
    """Return the learning rate that minimises the bound of Theorem 1.

    Args:
        num_clients: Number of clients in the federation, K.
        spare: What the quota leaves to be given by weight in all rounds, the sum of R_t.

    Returns:
        The rate, at most 1, as the theorem asks.

    Examples:
        >>> round(best_rate(100, spare=50_000.0), 3)
        0.096
    """
    if not spare or num_clients == 1:
        return 1.0
    return min(1.0, sqrt(num_clients * log(num_clients) / spare))


def choose_rate(
    eta: float | str, horizon: int | None, num_clients: int, cohort_size: int, quota: Quota
) -> float:
    """Return a learning rate, or for "auto" the best one of the theorem.

    Args:
        eta: The rate, above 0, or "auto".
        horizon: Number of rounds; needed for "auto".
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        quota: Fraction of a fair share that every client is guaranteed in a round.

    Raises:
        ValueError: If the rate is out of bounds, or the horizon is missing.

    Examples:
        >>> round(choose_rate("auto", 2500, 100, 20, constant(0.0)), 3)
        0.096
    """
    if eta != "auto":
        # Larger rates would leave the range of log-weights.
        return check_range("eta", check_positive("eta", eta), 0, MAX_COUNT)
    if horizon is None:
        raise ValueError("horizon must be the number of rounds where eta is 'auto', got None")

    rounds = range(check_int("horizon", horizon, 1))
    spare = cohort_size * sum(1 - quota(t) for t in rounds)  # sum of R_t
    return best_rate(num_clients, spare)


def _ramp(horizon: int, start: float, end: float, shape: Callable[[float], float]) -> Quota:
    """Return a quota whose `shape` maps progress in [0, 1] to [0, 1]."""
    last = max(check_int("horizon", horizon, 1) - 1, 1)
    start = check_range("start", start, 0.0, 1.0)
    end = check_range("end", end, 0.0, 1.0)
    return lambda round: start + (end - start) * shape(min(round / last, 1.0))
