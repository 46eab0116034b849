"""Which differences hold, paired by seed and corrected for their number.

All combinations of a block play the same seeds, so a two-way layout describes them: a value is an
effect of the combination plus an effect of the seed plus noise. The noise is pooled over all
combinations with the same rule, because rules differ in noise more than selectors do; that gives
enough degrees of freedom from few seeds. Where a rule is averaged over all selectors, one value per
rule and seed is left and nothing can be pooled: its noise is its own spread from seed to seed.
P-values of the comparisons with one combination are corrected by Holm's method. Where the noise
comes out as zero it is not known: few seeds that agree do not show that others would. Such a
difference has no interval and no p-value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.statistics import estimate, holm

LEVEL = 0.05
SMALLEST_ERROR = 1e-12  # a smaller one is rounding: the seeds agree to the last digit
Combination = tuple[str, str]  # selector and rule


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


def compare_with(
    reference: Combination, values: Mapping[Combination, Sequence[float]]
) -> dict[Combination, Difference]:
    """Compare every combination of a block with one of them.

    Args:
        reference: The combination to compare with.
        values: One value per seed, in the same order of seeds, by combination.

    Returns:
        The difference of every other combination.

    Raises:
        ValueError: If there are fewer than two seeds or two combinations.
    """
    noises = noise_by_rule(values)
    seeds = len(values[reference])
    others = [name for name in values if name != reference]
    means = []
    errors = []
    for name in others:
        means.append(float(np.mean(values[name]) - np.mean(values[reference])))
        errors.append(difference_error(noises[name[1]], noises[reference[1]], seeds))
    return dict(zip(others, _decide(means, errors), strict=True))


def compare_rules(
    reference: str, values: Mapping[Combination, Sequence[float]]
) -> dict[str, Difference]:
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
    errors = []
    for rule in others:
        difference = estimate((averages[rule] - averages[reference]).tolist())
        means.append(difference.mean)
        errors.append((difference.error, difference.runs - 1.0))
    return dict(zip(others, _decide(means, errors), strict=True))


def _average_over_selectors(values: Mapping[Combination, Sequence[float]]) -> dict[str, Floats]:
    """Return one value per seed by rule: the mean over the rule's selectors."""
    by_rule: dict[str, list[Sequence[float]]] = {}
    for (_, rule), seeds in values.items():
        by_rule.setdefault(rule, []).append(seeds)
    return {rule: np.mean(rows, axis=0) for rule, rows in by_rule.items()}


def best_group(values: Mapping[Combination, Sequence[float]]) -> list[Combination]:
    """Return the combination with the highest mean and all that cannot be told from it.

    Args:
        values: One value per seed by combination; higher is better.

    Returns:
        The combinations, the best first.
    """
    ranked = sorted(values, key=lambda name: -float(np.mean(values[name])))
    differences = compare_with(ranked[0], values)
    return [name for name in ranked if name == ranked[0] or not differences[name].holds]


def noise_by_rule(
    values: Mapping[Combination, Sequence[float]],
) -> dict[str, tuple[float, float]]:
    """Return the variance of the noise and its degrees of freedom, by rule.

    Args:
        values: One value per seed by combination.

    Raises:
        ValueError: If there are fewer than two seeds or two combinations.

    Examples:
        >>> noise_by_rule({("a", "r"): [1.0, 2.0], ("b", "r"): [3.0, 6.0]})
        {'r': (1.0, 1.0)}
    """
    table: Floats = np.array(list(values.values()), dtype=np.float64)
    combinations, seeds = table.shape
    if combinations < 2 or seeds < 2:
        raise ValueError(
            f"values must be of at least two combinations and two seeds, got {table.shape}"
        )
    by_combination = table.mean(axis=1, keepdims=True)
    by_seed = table.mean(axis=0, keepdims=True)
    residuals = table - by_combination - by_seed + table.mean()

    # Every combination has an equal part of all degrees of freedom.
    degrees_each = (combinations - 1) * (seeds - 1) / combinations
    rules = [rule for _, rule in values]
    noises = {}
    for rule in dict.fromkeys(rules):
        own = residuals[[name == rule for name in rules]]
        degrees = len(own) * degrees_each
        noises[rule] = (float((own**2).sum()) / degrees, degrees)
    return noises


def difference_error(
    one: tuple[float, float], other: tuple[float, float], seeds: int
) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and its degrees of freedom.

    The degrees of freedom are Satterthwaite's, for two noises of different size.

    Args:
        one: Variance and degrees of freedom of the noise of one combination.
        other: Those of the other one; the same if both have one rule.
        seeds: Number of seeds.

    Examples:
        >>> error, degrees = difference_error((2.0, 6.0), (2.0, 6.0), seeds=4)
        >>> error, degrees
        (1.0, 12.0)
    """
    parts = (one[0] / seeds, other[0] / seeds)
    total = sum(parts)
    if not total:
        return 0.0, one[1]
    degrees = total**2 / (parts[0] ** 2 / one[1] + parts[1] ** 2 / other[1])
    return sqrt(total), degrees


def _decide(means: Sequence[float], errors: Sequence[tuple[float, float]]) -> list[Difference]:
    """Return differences with their intervals and corrected p-values.

    A difference without noise counts among the comparisons that are corrected for.

    Args:
        means: The mean differences.
        errors: Standard error and degrees of freedom of each.
    """
    from scipy import stats

    sizes = np.array([size for size, _ in errors])
    degrees = np.array([freedom for _, freedom in errors])
    is_known = sizes > SMALLEST_ERROR
    ratios = np.abs(means) / np.maximum(sizes, SMALLEST_ERROR)
    p_values = np.where(is_known, 2 * stats.t.sf(ratios, degrees), 1.0)
    corrected = np.where(is_known, holm(p_values), nan)
    margins = np.where(is_known, stats.t.ppf(1 - LEVEL / 2, degrees) * sizes, nan)
    differences = []
    for mean, margin, p_value in zip(means, margins.tolist(), corrected.tolist(), strict=True):
        differences.append(Difference(mean, mean - margin, mean + margin, p_value))
    return differences
