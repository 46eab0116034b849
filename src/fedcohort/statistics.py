"""Means over seeds, and when a mean decides a question.

A mean decides if it lies beyond a one-sided 95 % limit of Student's t. One seed has no spread,
so it must exceed a given noise level instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, cos, exp, isnan, nan, pi, sin, sqrt

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

# One-sided 95 % quantiles of Student's t, for 1 to 15 degrees of freedom.
T95 = (
    6.314, 2.920, 2.353, 2.132, 2.015,
    1.943, 1.895, 1.860, 1.833, 1.812,
    1.796, 1.782, 1.771, 1.761, 1.753,
)  # fmt: skip
Z95 = 1.645  # the same quantile of the normal distribution
ROUNDING = 1e-10  # values that differ by a smaller part of themselves are equal


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its standard error.

    Attributes:
        mean: Mean over the seeds, nan without any.
        error: Standard error of the mean, nan for fewer than two seeds.
        runs: Number of seeds.
    """

    mean: float
    error: float
    runs: int

    def margin(self, noise: float) -> float:
        """Return how far from zero the mean must lie to decide.

        This is t times the standard error. One seed has no standard error, and seeds that agree
        but for rounding, as counts of few samples may, say as little about the spread: for both
        it is the noise.

        Args:
            noise: Typical difference between two seeds, known from elsewhere.

        Examples:
            >>> round(estimate([1.0, 2.0, 3.0]).margin(noise=0.5), 3)
            1.686
            >>> estimate([1.0]).margin(noise=0.5)
            0.5
        """
        if isnan(self.error) or not self.error:
            return noise
        return t95(self.runs - 1) * self.error

    def as_ratio(self) -> str:
        """Return the estimate of a logarithm as a ratio, with its standard error.

        Examples:
            >>> estimate([0.1, 0.2]).as_ratio()
            '1.16× ± 0.06'
        """
        if not self.runs:
            return "-"
        ratio = exp(self.mean)
        if isnan(self.error):
            return f"{ratio:.2f}×"
        return f"{ratio:.2f}× ± {ratio * self.error:.2f}"


def sd(values: Floats) -> float:
    """Return the standard deviation over seeds; 0 if values agree, nan for fewer than two."""
    if values.size < 2:
        return nan
    if agree(values):
        return 0.0
    return float(values.std(ddof=1))


def agree(values: npt.ArrayLike) -> bool:
    """Return whether all values are the same but for rounding.

    Examples:
        >>> agree([0.3 - 0.2, 0.4 - 0.3, 0.1]), agree([0.1, 0.1001])
        (True, False)
    """
    array = np.asarray(values, dtype=np.float64)
    spread = float(np.ptp(array))
    return spread == 0 or spread < ROUNDING * float(np.abs(array).max())


def mean_of_known(values: Floats) -> Floats:
    """Return the means over the first axis without the nan; nan where there is nothing else.

    Args:
        values: Values [S, ...], such as one row per seed.

    Examples:
        >>> mean_of_known(np.array([[1.0, nan, nan], [3.0, 5.0, nan]])).tolist()
        [2.0, 5.0, nan]
    """
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return means


def t95(degrees: int) -> float:
    """Return the one-sided 95 % quantile of Student's t.

    Beyond the table it comes from its expansion, which is right to 0.001.

    Args:
        degrees: Degrees of freedom, at least 1.

    Returns:
        The quantile.

    Examples:
        >>> t95(2), round(t95(30), 3)
        (2.92, 1.697)
    """
    if degrees <= len(T95):
        return T95[degrees - 1]
    return expand_t(Z95, degrees)


def expand_t(z: float, degrees: int) -> float:
    """Return a quantile of Student's t from that of the normal distribution.

    These are the first terms of its expansion in 1 / degrees.

    Args:
        z: The quantile of the normal distribution.
        degrees: Degrees of freedom, above 15.
    """
    first = (z**3 + z) / (4 * degrees)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return z + first + second


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


def t_limit(tail: float, degrees: int) -> float:
    """Return the ratio that Student's t exceeds with a probability, without SciPy.

    Args:
        tail: The probability, above 0 and at most one half.
        degrees: Degrees of freedom, at least 1.

    Examples:
        >>> round(t_limit(0.025, 2), 3)
        4.303
    """
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > tail:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        if t_tail(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return high


def p_pooled(groups: Sequence[Sequence[float]]) -> list[float]:
    """Return for each group of paired differences the p-value that their mean is not zero.

    A few seeds tell little of the spread of one comparison. The spread from seed to seed is
    therefore pooled over all groups, and Student's t has the degrees of freedom of all.

    Args:
        groups: The differences of each comparison, one per seed.

    Returns:
        Two-sided p-values: 1 for an empty group, and for all groups if there is no spread.

    Examples:
        >>> [round(p_value, 3) for p_value in p_pooled([[1.0, 2.0, 3.0], [4.0, 6.0, 5.0]])]
        [0.026, 0.001]
    """
    variance, degrees = pooled_variance(groups)
    if not variance:
        return [1.0] * len(groups)

    p_values = []
    for differences in groups:
        p_value = 1.0
        if len(differences):
            error = sqrt(variance / len(differences))
            p_value = 2 * t_tail(abs(float(np.mean(differences))) / error, degrees)
        p_values.append(p_value)
    return p_values


def pooled_variance(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the variance from seed to seed within groups, and its degrees of freedom.

    Examples:
        >>> pooled_variance([[1.0, 3.0], [4.0, 4.0]])
        (1.0, 2)
    """
    degrees = 0
    squares = 0.0
    for differences in groups:
        if len(differences) > 1:
            degrees += len(differences) - 1
            if not agree(differences):
                squares += float(np.var(differences)) * len(differences)
    return squares / max(1, degrees), degrees


def holm(p_values: Floats) -> Floats:
    """Return p-values corrected for their number by Holm's method.

    Args:
        p_values: The uncorrected ones [n].

    Returns:
        The corrected ones [n], in the same order.

    Examples:
        >>> import numpy as np
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    count = len(p_values)
    order = np.argsort(p_values)
    factors = np.arange(count, 0, -1)
    in_order = np.maximum.accumulate(np.minimum(p_values[order] * factors, 1.0))
    corrected = np.empty(count)
    corrected[order] = in_order
    return corrected


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean and the standard error of values over seeds.

    Args:
        values: One value per seed; may be empty.

    Returns:
        The mean, nan without values, and the standard error, nan for fewer than two.

    Examples:
        >>> estimate([1.0, 2.0, 3.0]).mean
        2.0
    """
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean()) if array.size else nan
    error = sd(array) / sqrt(max(1, array.size))
    return Estimate(mean, error, int(array.size))
