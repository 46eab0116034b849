"""Which differences hold, paired by seed and corrected for their number.

All combinations of a block play the same seeds, so a two-way layout describes them: a value is an
effect of the combination plus an effect of the seed plus noise. The noise is pooled over all
combinations with the same rule, because rules differ in noise more than selectors do; that gives
enough degrees of freedom from few seeds. Where a rule is averaged over all selectors, one value per
rule and seed is left and nothing can be pooled: its noise is its own spread from seed to seed.
P-values of the comparisons with the baseline are corrected by Holm's method. The highest is no
baseline, because the values choose it: it is compared by the studentised range. Where the noise
comes out as zero it is not known: few seeds that agree do not show that others would. Such a
difference has no interval and no p-value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan, nan, sqrt

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.statistics import Noise, estimate, holm, two_way_residuals

LEVEL = 0.05
SMALLEST_ERROR = 1e-12  # a smaller one is rounding: the seeds agree to the last digit
Combination = tuple[str, str]  # selector and rule
Values = Mapping[Combination, Sequence[float]]  # one value per seed, in one order of seeds


@dataclass(frozen=True)
class Difference:
    """How a combination compares with a reference.

    Attributes:
        mean: Mean difference over the seeds.
        low: Lower end of its 95 % interval, nan if the noise is not known.
        high: Upper end of its 95 % interval, nan if the noise is not known.
        p_value: Two-sided, corrected for all comparisons of the block; nan if the noise is
            not known.
    """

    mean: float
    low: float
    high: float
    p_value: float

    @property
    def holds(self) -> bool:
        """Whether the difference is told from zero at the 5 % level."""
        return self.p_value < LEVEL

    @property
    def has_interval(self) -> bool:
        """Whether the noise is known, and with it the interval and the p-value."""
        return not isnan(self.p_value)


def compare_with(reference: Combination, values: Values) -> dict[Combination, Difference]:
    """Compare every combination of a block with one of them.

    Args:
        reference: The combination to compare with.
        values: One value per seed, in the same order of seeds, by combination.

    Returns:
        The difference of every other combination.

    Raises:
        ValueError: If there are fewer than two seeds or two combinations.
    """
    others = [name for name in values if name != reference]
    means = [float(np.mean(values[name]) - np.mean(values[reference])) for name in others]
    noises = _difference_noises(reference, others, values)
    return dict(zip(others, _decide(means, noises), strict=True))


def compare_rules(reference: str, values: Values) -> dict[str, Difference]:
    """Compare every rule with one of them, averaged over the selectors.

    The runs of a seed share a world, so they are averaged first and the seed is the unit. The
    spread is that of a rule's own differences over the seeds: rules differ in noise, so it is not
    pooled over them.

    Args:
        reference: The rule to compare with.
        values: One value per seed, in the same order of seeds, by combination. Every rule has
            the same selectors.

    Returns:
        The difference of every other rule.
    """
    averages = _average_over_selectors(values)
    others = [rule for rule in averages if rule != reference]
    means = []
    noises = []
    for rule in others:
        difference = estimate((averages[rule] - averages[reference]).tolist())
        means.append(difference.mean)
        noises.append(Noise(difference.error**2, difference.runs - 1))
    return dict(zip(others, _decide(means, noises), strict=True))


def _average_over_selectors(values: Values) -> dict[str, Floats]:
    """Return one value per seed by rule: the mean over the rule's selectors."""
    by_rule: dict[str, list[Sequence[float]]] = {}
    for (_, rule), seeds in values.items():
        by_rule.setdefault(rule, []).append(seeds)
    return {rule: np.mean(rows, axis=0) for rule, rows in by_rule.items()}


def best_group(values: Values) -> list[Combination]:
    """Return the combination with the highest mean and all that cannot be told from it.

    The values choose the highest, so it is compared by the studentised range of all combinations:
    how far the highest and the lowest of so many equal ones are apart.

    Args:
        values: One value per seed by combination; higher is better.

    Returns:
        The combinations, the best first.
    """
    best, *others = sorted(values, key=lambda name: -float(np.mean(values[name])))
    noises = noise_by_rule(values)
    group = [best]
    for name, noise in zip(others, _difference_noises(best, others, values), strict=True):
        # Among many pairs one with a noise that came out too small looks furthest apart. Added
        # degrees of freedom would not allow for that, so the fewer of the two rules count.
        degrees = min(noises[best[1]].degrees, noises[name[1]].degrees)
        lead = float(np.mean(values[best]) - np.mean(values[name]))
        error = sqrt(noise.variance)
        if error <= SMALLEST_ERROR or lead <= _range_limit(len(values), degrees) * error:
            group.append(name)
    return group


@cache
def _range_limit(count: int, degrees: float) -> float:
    """Return how far apart the extremes of equal means are in 5 % of cases at most.

    Args:
        count: Number of means.
        degrees: Degrees of freedom of their noise.

    Returns:
        The limit of their difference, divided by the standard error of a difference.
    """
    from scipy import stats

    # The range is studentised by the error of one mean, which is smaller by the root of two.
    return float(stats.studentized_range.ppf(1 - LEVEL, count, degrees)) / sqrt(2)


def noise_by_rule(
    values: Values,
) -> dict[str, Noise]:
    """Return the noise of one run, by rule.

    Args:
        values: One value per seed by combination.

    Raises:
        ValueError: If there are fewer than two seeds or two combinations.

    Examples:
        >>> noise_by_rule({("a", "r"): [1.0, 2.0], ("b", "r"): [3.0, 6.0]})
        {'r': Noise(variance=1.0, degrees=1.0)}
    """
    table: Floats = np.array(list(values.values()), dtype=np.float64)
    combinations, seeds = table.shape
    if combinations < 2 or seeds < 2:
        raise ValueError(
            f"values must be of at least two combinations and two seeds, got {table.shape}"
        )
    residuals, all_degrees = two_way_residuals(table)

    # Every combination has an equal part of all degrees of freedom.
    degrees_each = all_degrees / combinations
    rules = [rule for _, rule in values]
    noises = {}
    for rule in dict.fromkeys(rules):
        own = residuals[[name == rule for name in rules]]
        degrees = len(own) * degrees_each
        noises[rule] = Noise(float((own**2).sum()) / degrees, degrees)
    return noises


def _difference_noises(
    reference: Combination, others: Sequence[Combination], values: Values
) -> list[Noise]:
    """Return the noise of the mean difference of every other combination to one of them."""
    noises = noise_by_rule(values)
    own = noises[reference[1]]
    seeds = len(values[reference])
    found = []
    for _, rule in others:
        # Two combinations with one rule share one estimate, with its degrees of freedom once.
        sum_of_both = own.times(2) if rule == reference[1] else own + noises[rule]
        found.append(sum_of_both.times(1 / seeds))
    return found


def _errors(noises: Sequence[Noise]) -> tuple[Floats, Floats]:
    """Return the standard errors of some means, and their degrees of freedom."""
    sizes = np.sqrt([noise.variance for noise in noises])
    degrees = np.array([noise.degrees for noise in noises], dtype=np.float64)
    return sizes, degrees


def _decide(means: Sequence[float], noises: Sequence[Noise]) -> list[Difference]:
    """Return differences with their intervals and corrected p-values.

    A difference without noise counts among the comparisons that are corrected for.

    Args:
        means: The mean differences.
        noises: The noise of each mean.
    """
    from scipy import stats

    sizes, degrees = _errors(noises)
    is_known = sizes > SMALLEST_ERROR
    ratios = np.abs(means) / np.maximum(sizes, SMALLEST_ERROR)
    p_values = np.where(is_known, 2 * stats.t.sf(ratios, degrees), 1.0)
    corrected = np.where(is_known, holm(p_values), nan)
    margins = np.where(is_known, stats.t.ppf(1 - LEVEL / 2, degrees) * sizes, nan)
    differences = []
    for mean, margin, p_value in zip(means, margins.tolist(), corrected.tolist(), strict=True):
        differences.append(Difference(mean, mean - margin, mean + margin, p_value))
    return differences
