"""Schemes that may be recommended, and how far two of them are apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan, sqrt

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.words import counted, signed
from fedcohort.statistics import BySeed, Layout, holm, pool_noise
from fedcohort.students_t import t_limit, t_tail

LEVEL = 0.05  # of the corrected p-values, and one minus the confidence of the intervals


@dataclass(frozen=True, eq=False)
class Candidate:
    """A scheme that may be recommended: a selector and the rule that combines its updates.

    Attributes:
        name: Name in tables and figures, different for every candidate of a case.
        selector: Name of the selector.
        rule: How updates are combined, in words. Empty if nothing is to be said about it.
        kind: Kind of run that it belongs to.
        scheme: Its results.
        is_uniform: Whether the selector asks everybody equally often.
        is_papers: Whether it is E3CS as the paper defines it.
    """

    name: str
    selector: str
    rule: str
    kind: str
    scheme: SchemeResults
    is_uniform: bool = False
    is_papers: bool = False

    @property
    def words(self) -> str:
        """The selector and its rule, in a sentence."""
        return f"{self.selector} with the {self.rule}" if self.rule else self.name

    @property
    def by_seed(self) -> BySeed:
        """Final accuracy of each seed that was played to the end."""
        return known_by_seed(self.scheme, self.scheme.final_accuracy)

    @property
    def accuracy(self) -> float:
        """Mean final accuracy over seeds, nan if no seed was played to the end."""
        values = list(self.by_seed.values())
        return float(np.mean(values)) if values else nan


Cases = Mapping[str, Sequence[Candidate]]  # candidates by the case that they were tried in


@dataclass(frozen=True)
class Difference:
    """How far two schemes are apart, seed by seed, such as in their final accuracy.

    Attributes:
        mean: Mean over the seeds that both were played with, nan without any.
        margin: How far the 95 % interval reaches to either side, nan if no spread is known.
        p_value: Two-sided p-value, corrected for the number of comparisons.
        seeds: Number of seeds that both were played with.
    """

    mean: float
    margin: float
    p_value: float
    seeds: int

    @property
    def interval(self) -> str:
        """The 95 % interval in points of accuracy, empty if no spread is known."""
        if isnan(self.margin):
            return ""
        low = signed(100 * (self.mean - self.margin))
        high = signed(100 * (self.mean + self.margin))
        return f"{low} to {high}"

    @property
    def seeds_in_words(self) -> str:
        """What the difference rests on: "3 seeds", or "one seed"."""
        if not self.seeds:
            return "runs without a common seed"
        return "one seed" if self.seeds == 1 else counted(self.seeds, "seed")

    @property
    def holds_zero(self) -> bool:
        """Whether the interval allows for no difference at all."""
        return isnan(self.margin) or abs(self.mean) <= self.margin


def known_by_seed(scheme: SchemeResults, values: Floats | None) -> BySeed:
    """Return the values of a scheme by seed, without what is not known.

    Args:
        scheme: The scheme, for its seeds.
        values: [S] one value per seed, None if they were not recorded.
    """
    if values is None:
        return {}
    pairs = zip(scheme.seeds, values.tolist(), strict=True)
    return {seed: value for seed, value in pairs if not isnan(value)}


def paired_differences(more: BySeed, less: BySeed) -> list[float]:
    """Return the difference for each seed that both have.

    Args:
        more: The values to subtract from.
        less: The values to subtract.

    Examples:
        >>> paired_differences({0: 3.0, 1: 5.0}, {1: 4.0, 2: 9.0})
        [1.0]
    """
    return [more[seed] - less[seed] for seed in more if seed in less]


def differences_to(reference: str, layout: Layout) -> dict[str, Difference]:
    """Return how far each other scheme is ahead of one that was named before the runs.

    Args:
        reference: The scheme to subtract.
        layout: Values by scheme and seed, the reference among them.

    Returns:
        The difference of each other scheme, its p-value corrected for their number.
    """
    others = [name for name in layout if name != reference]
    found = _differences([(name, reference) for name in others], layout)
    return dict(zip(others, found, strict=True))


def differences_from_first(first: str, layout: Layout) -> dict[str, Difference]:
    """Return how far one that the values chose, such as the highest, is from each other.

    Any scheme might have come first by chance, so p-values are corrected for all pairs.

    Args:
        first: The scheme to subtract from.
        layout: Values by scheme and seed, the first among them.

    Returns:
        The difference to each other scheme.
    """
    others = [name for name in layout if name != first]
    found = _differences(list(combinations([first, *others], 2)), layout)
    return dict(zip(others, found, strict=False))  # the pairs of the first come first


def num_pairs(schemes: int) -> int:
    """Return how many pairs some schemes make.

    Examples:
        >>> num_pairs(4)
        6
    """
    return schemes * (schemes - 1) // 2


def _differences(pairs: Sequence[tuple[str, str]], layout: Layout) -> list[Difference]:
    """Return the difference of each pair, with p-values corrected for the number of pairs.

    The noise is that of the two-way layout. Without any no p-value is below 1.
    """
    noise = pool_noise([layout])
    is_known = noise.variance > 0
    degrees = int(noise.degrees)
    limit = t_limit(LEVEL / 2, degrees) if is_known else nan

    means = []
    margins = []
    p_values = []
    seeds = []
    for more, less in pairs:
        values = paired_differences(layout[more], layout[less])
        mean = float(np.mean(values)) if values else nan
        margin = nan
        p_value = 1.0
        if values and is_known:
            error = sqrt(2 * noise.variance / len(values))
            margin = limit * error
            p_value = 2 * t_tail(abs(mean) / error, degrees)
        means.append(mean)
        margins.append(margin)
        p_values.append(p_value)
        seeds.append(len(values))
    corrected = holm(np.array(p_values)).tolist()
    return list(map(Difference, means, margins, corrected, seeds))
