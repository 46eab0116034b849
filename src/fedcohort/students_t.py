"""Quantiles and tails of Student's t."""

from functools import cache
from math import atan2, cos, pi, sin, sqrt
from statistics import NormalDist

MANY = 1000  # degrees of freedom from which the expansion below is exact to six digits


def t_quantile(probability: float, degrees: float) -> float:
    """Return a quantile of Student's t.

    Args:
        probability: Between 0 and 1.
        degrees: Degrees of freedom, above 0.

    Examples:
        >>> round(t_quantile(0.975, 2), 3)
        4.303
    """
    from scipy import stats  # Imported here: only reports need SciPy.

    return float(stats.t.ppf(probability, degrees))


def t_p_value(ratio: float, degrees: float) -> float:
    """Return the two-sided p-value of a mean divided by its standard error.

    Examples:
        >>> round(t_p_value(-4.303, 2), 3)
        0.05
    """
    from scipy import stats  # Imported here: only reports need SciPy.

    return float(2 * stats.t.sf(abs(ratio), degrees))


def t_tail(ratio: float, degrees: int) -> float:
    """Return the probability that Student's t is above a ratio, without SciPy.

    For whole degrees of freedom the distribution is a finite sum of powers of a cosine.

    Args:
        ratio: A mean divided by its standard error.
        degrees: Degrees of freedom, at least 1.

    Examples:
        >>> round(t_tail(2.920, 2), 3), round(t_tail(-1.753, 15), 3)
        (0.05, 0.95)
    """
    angle = atan2(ratio, sqrt(degrees))
    square = cos(angle) ** 2
    is_odd = degrees % 2
    term = cos(angle) if is_odd else 1.0
    total = 0.0
    for power in range(2 + is_odd, degrees + 1, 2):
        total += term
        term *= square * (power - 1) / power
    inside = sin(angle) * total
    if is_odd:
        inside = 2 / pi * (angle + inside)
    return max(0.0, (1 - inside) / 2)  # rounding must not make it negative


@cache
def t_limit(tail: float, degrees: int) -> float:
    """Return the ratio that Student's t exceeds with a probability, without SciPy.

    Args:
        tail: The probability, above 0 and at most one half.
        degrees: Degrees of freedom, at least 1.

    Examples:
        >>> round(t_limit(0.025, 2), 3)
        4.303
    """
    if degrees > MANY:
        return _expand_t(NormalDist().inv_cdf(1 - tail), degrees)
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > tail:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        if t_tail(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return high


def _expand_t(z: float, degrees: int) -> float:
    """Return a quantile of Student's t by its expansion in 1 / degrees around the normal's."""
    first = (z**3 + z) / (4 * degrees)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return z + first + second
