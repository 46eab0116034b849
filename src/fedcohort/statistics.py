"""Means over seeds and when they decide: one-sided 95 % limits of Student's t, and a stated noise level for one seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isnan, nan, sqrt

import numpy as np

# one-sided 95 % quantiles of Student's t by degrees of freedom; beyond them the normal's
T95 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753)
Z95 = 1.645


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its standard error, nan for fewer than two."""

    mean: float
    error: float
    runs: int

    def margin(self, noise: float) -> float:
        """Return how far from zero a mean must lie to be decided: t times the standard error; with one seed, the noise."""
        if isnan(self.error):
            return noise
        degrees = self.runs - 1
        return (T95[degrees - 1] if degrees <= len(T95) else Z95) * self.error

    def as_ratio(self) -> str:
        """Return the estimate of a log as a ratio, with its standard error."""
        if not self.runs:
            return "-"
        return f"{exp(self.mean):.2f}×" + ("" if isnan(self.error) else f" ± {exp(self.mean) * self.error:.2f}")


def estimate(values: Sequence[float]) -> Estimate:
    """Return mean and standard error of values over seeds; of none, nan."""
    known = np.asarray(values, dtype=np.float64)
    error = float(known.std(ddof=1)) / sqrt(known.size) if known.size > 1 else nan
    return Estimate(float(known.mean()) if known.size else nan, error, int(known.size))
