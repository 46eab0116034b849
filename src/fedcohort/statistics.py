"""Means over seeds with their spread, the noise of runs, and corrected p-values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isnan, nan, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats

BySeed: TypeAlias = Mapping[int, float]  # one value per seed
Layout: TypeAlias = Mapping[str, BySeed]  # by scheme

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
    """Return whether all values are the same but for rounding, as fewer than two always are.

    Examples:
        >>> agree([0.3 - 0.2, 0.4 - 0.3, 0.1]), agree([0.1, 0.1001])
        (True, False)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return True
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


@dataclass(frozen=True)
class Noise:
    """A variance that was estimated.

    Attributes:
        variance: The estimate; nan without degrees of freedom.
        degrees: Degrees of freedom, 0 if there is nothing to estimate it from.
    """

    variance: float
    degrees: float

    def __add__(self, other: "Noise") -> "Noise":
        """Return the noise of a sum of independent values, with Satterthwaite's degrees.

        Both variances must be estimates of their own: twice the same one is `times(2)`.

        Examples:
            >>> Noise(1.0, 4) + Noise(1.0, 4)
            Noise(variance=2.0, degrees=8.0)
        """
        if not self.degrees or not other.degrees:
            return UNKNOWN_NOISE
        variance = self.variance + other.variance
        if not variance:
            return Noise(0.0, min(self.degrees, other.degrees))
        spent = self.variance**2 / self.degrees + other.variance**2 / other.degrees
        return Noise(variance, variance**2 / spent)

    def times(self, factor: float) -> "Noise":
        """Return the noise whose variance is a multiple of this one."""
        if not self.degrees:
            return UNKNOWN_NOISE  # Comparisons whose noise is unknown must be equal: nan is not.
        return Noise(factor * self.variance, self.degrees)


UNKNOWN_NOISE = Noise(nan, 0)


def pool_noise(layouts: Iterable[Layout]) -> Noise:
    """Return the noise of one run in two-way layouts, each with effects of schemes and seeds.

    Differences to one scheme share its noise, so their spreads are no independent estimates.
    What effects of schemes and seeds leave has the degrees of freedom that it claims.

    Args:
        layouts: Values by scheme and seed, one layout for each group of runs.

    Examples:
        >>> pool_noise([{"a": {0: 1.0, 1: 2.0}, "b": {0: 3.0, 1: 6.0}}])
        Noise(variance=1.0, degrees=1)
    """
    squares = 0.0
    degrees = 0
    for layout in layouts:
        residuals, freedom = two_way_residuals(_table(distinct(layout)))
        squares += float(np.nansum(residuals**2))
        degrees += freedom
    if not degrees:
        return UNKNOWN_NOISE
    return Noise(squares / degrees, degrees)


def distinct(layout: Layout) -> list[BySeed]:
    """Return the values of the schemes, once where they are equal for all seeds.

    E3CS-0 and E3CS-inc are one scheme until a quarter of the rounds.
    """
    different = {tuple(sorted(values.items())): values for values in layout.values() if values}
    return list(different.values())


def _table(rows: Sequence[BySeed]) -> Floats:
    """Return rows as a table, one column for each seed, nan where a row lacks it."""
    seeds = sorted({seed for row in rows for seed in row})
    table = np.full((len(rows), len(seeds)), nan)
    for number, row in enumerate(rows):
        for seed, value in row.items():
            table[number, seeds.index(seed)] = value
    return table


def two_way_residuals(table: Floats) -> tuple[Floats, int]:
    """Return what effects of rows and columns leave of a table, and its degrees of freedom.

    Args:
        table: Values [rows, columns]; those that are not finite do not count.

    Returns:
        The residuals [rows, columns], nan where there is no value. They are 0 if they are only
        rounding.

    Examples:
        >>> two_way_residuals(np.array([[1.0, 2.0], [3.0, 6.0]]))
        (array([[ 0.5, -0.5],
               [-0.5,  0.5]]), 1)
    """
    known = np.isfinite(table)
    if not known.any():
        return np.full(table.shape, nan), 0
    num_rows, num_columns = table.shape
    if known.all():
        by_row = table.mean(axis=1, keepdims=True)
        by_column = table.mean(axis=0, keepdims=True)
        residuals = table - by_row - by_column + table.mean()
        degrees = (num_rows - 1) * (num_columns - 1)
    else:
        row, column = np.nonzero(known)
        design = np.hstack([np.eye(num_rows)[row], np.eye(num_columns)[column]])
        effects, _, rank, _ = np.linalg.lstsq(design, table[known], rcond=None)
        residuals = np.full(table.shape, nan)
        residuals[known] = table[known] - design @ effects
        degrees = int(known.sum()) - int(rank)
    if np.nanmax(np.abs(residuals)) < ROUNDING * np.abs(table[known]).max():
        residuals = np.where(known, 0.0, nan)
    return residuals, degrees


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
