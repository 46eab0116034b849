"""Means over seeds with their spread, and p-values of comparisons."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isnan, nan, sqrt

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.students_t import t_tail

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
