"""Means over seeds and when they decide: one-sided 95 % limits of Student's t, and a noise level for one seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isnan, nan, sqrt

import numpy as np

from fedcohort.arrays import Floats

# one-sided 95 % quantiles of Student's t by degrees of freedom; beyond them, from the normal's
T95 = (
    6.314,
    2.920,
    2.353,
    2.132,
    2.015,
    1.943,
    1.895,
    1.860,
    1.833,
    1.812,
    1.796,
    1.782,
    1.771,
    1.761,
    1.753,
)
Z95 = 1.645


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its standard error, nan for fewer than two."""

    mean: float
    error: float
    runs: int

    def margin(self, noise: float) -> float:
        """Return how far from zero a mean must lie to be decided: t times the standard error; with one seed, the noise.

        Seeds that agree to the last digit, as counts of few samples may, say as little of the spread as one.
        """
        return noise if isnan(self.error) or not self.error else t95(self.runs - 1) * self.error

    def as_ratio(self) -> str:
        """Return the estimate of a log as a ratio, with its standard error."""
        if not self.runs:
            return "-"
        return f"{exp(self.mean):.2f}×" + (
            "" if isnan(self.error) else f" ± {exp(self.mean) * self.error:.2f}"
        )


def sd(values: Floats) -> float:
    """Return the standard deviation over seeds; nan for fewer than two."""
    return float(values.std(ddof=1)) if values.size > 1 else nan


def t95(degrees: int) -> float:
    """Return the quantile; beyond the table by the first terms of its expansion in 1 / degrees, right to 0.001."""
    if degrees <= len(T95):
        return T95[degrees - 1]
    return (
        Z95
        + (Z95**3 + Z95) / (4 * degrees)
        + (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * degrees**2)
    )


def estimate(values: Sequence[float]) -> Estimate:
    """Return mean and standard error of values over seeds; of none, nan."""
    known = np.asarray(values, dtype=np.float64)
    return Estimate(
        float(known.mean()) if known.size else nan,
        sd(known) / sqrt(max(1, known.size)),
        int(known.size),
    )
