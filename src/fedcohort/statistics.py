"""Means over seeds, and when a mean decides a question.

A mean decides if it lies beyond a one-sided 95 % limit of Student's t. One seed has no spread,
so it must exceed a given noise level instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isnan, nan, sqrt

import numpy as np

from fedcohort.arrays import Floats

# One-sided 95 % quantiles of Student's t, for 1 to 15 degrees of freedom.
T95 = (
    6.314, 2.920, 2.353, 2.132, 2.015,
    1.943, 1.895, 1.860, 1.833, 1.812,
    1.796, 1.782, 1.771, 1.761, 1.753,
)  # fmt: skip
Z95 = 1.645  # the same quantile of the normal distribution


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
        to the last digit, as counts of few samples may, say as little about the spread: for
        both it is the noise.

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
    """Return the standard deviation over seeds, nan for fewer than two values."""
    if values.size < 2:
        return nan
    return float(values.std(ddof=1))


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

    Beyond the table it comes from the first terms of its expansion in 1 / degrees, which are
    right to 0.001.

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
    first = (Z95**3 + Z95) / (4 * degrees)
    second = (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * degrees**2)
    return Z95 + first + second


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
