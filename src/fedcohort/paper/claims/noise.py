"""The noise of trained runs: what is left once the effects of scheme and world are known.

Groups of runs are two-way layouts, scheme by world. The noise is pooled over all of them and over
all schemes but FedCS. FedCS asks the same few clients for ever, so that its result depends on
what these own; its noise is larger and stands for itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

BySeed = Mapping[int, float]
Layout = Mapping[str, BySeed]  # values by scheme and world
APART = "fedcs"  # the scheme with a noise of its own


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
        return Noise(factor * self.variance, self.degrees)


UNKNOWN_NOISE = Noise(nan, 0)


@dataclass(frozen=True)
class RunNoise:
    """The noise of the runs of a task.

    Attributes:
        others: Noise of one run of any scheme but FedCS.
        apart: Noise of FedCS less the mean of the other schemes in the same world.
        share: Part of `others` that the mean of the other schemes adds to `apart`.
    """

    others: Noise
    apart: Noise
    share: float

    def of_difference(self, first: str, second: str) -> Noise:
        """Return the noise of the difference of two schemes in one world."""
        if APART not in (first, second):
            return self.others.times(2)
        return self.apart + self.others.times(1 - self.share)


def estimate_noise(layouts: Iterable[Layout]) -> RunNoise:
    """Return the noise of some groups of runs.

    Args:
        layouts: Values by scheme and world, one layout for each group.
    """
    layouts = list(layouts)
    others = []
    squares = 0.0
    degrees = 0
    shares = 0.0
    for layout in layouts:
        rest = {name: values for name, values in layout.items() if name != APART and values}
        others.append(rest)
        leads, number = _leads(layout.get(APART, {}), rest)
        if len(leads) > 1:
            squares += float(np.var(leads)) * len(leads)
            degrees += len(leads) - 1
            shares += (len(leads) - 1) / number
    if not degrees:
        return RunNoise(pool(others), UNKNOWN_NOISE, share=0.0)
    return RunNoise(pool(others), Noise(squares / degrees, degrees), shares / degrees)


def _leads(apart: BySeed, rest: Layout) -> tuple[list[float], int]:
    """Return FedCS less the mean of the others by world, and how many others there are.

    Only schemes with a value in every world of FedCS count: a mean must not change its members.
    """
    complete = [values for values in distinct(rest) if apart.keys() <= values.keys()]
    if not complete:
        return [], 0
    leads = []
    for seed, value in apart.items():
        leads.append(value - float(np.mean([values[seed] for values in complete])))
    return leads, len(complete)


def pool(layouts: Iterable[Layout]) -> Noise:
    """Return the noise of one run in two-way layouts, each with effects of schemes and worlds.

    Args:
        layouts: Values by scheme and world, one layout for each group of runs.

    Examples:
        >>> pool([{"a": {0: 1.0, 1: 2.0}, "b": {0: 3.0, 1: 6.0}}])
        Noise(variance=1.0, degrees=1)
    """
    squares = 0.0
    degrees = 0
    for layout in layouts:
        found, freedom = _residuals(distinct(layout))
        squares += found
        degrees += freedom
    if not degrees:
        return UNKNOWN_NOISE
    return Noise(round(squares / degrees, 15), degrees)


def distinct(layout: Layout) -> list[BySeed]:
    """Return the values of the schemes, once where they are equal in all worlds.

    E3CS-0 and E3CS-inc are one scheme until a quarter of the rounds.
    """
    different = {tuple(sorted(values.items())): values for values in layout.values() if values}
    return list(different.values())


def _residuals(rows: Sequence[BySeed]) -> tuple[float, int]:
    """Return the squares that effects of rows and worlds leave, and their degrees of freedom."""
    worlds = sorted({seed for row in rows for seed in row})
    design = []
    values = []
    for number, row in enumerate(rows):
        for seed, value in row.items():
            line = np.zeros(len(rows) + len(worlds))
            line[number] = 1.0
            line[len(rows) + worlds.index(seed)] = 1.0
            design.append(line)
            values.append(value)
    if not values:
        return 0.0, 0
    matrix = np.array(design)
    observed = np.array(values)
    effects, _, rank, _ = np.linalg.lstsq(matrix, observed, rcond=None)
    squares = float(((observed - matrix @ effects) ** 2).sum())
    return squares, len(values) - int(rank)
