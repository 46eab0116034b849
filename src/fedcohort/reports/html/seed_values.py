"""Values of schemes by seed: their order, their words, and whom seeds can tell apart.

Schemes are compared seed by seed, because runs with the same seed meet the same failures. The
p-values are corrected for all pairs, because the values choose which scheme is called the first.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.candidates import (
    LEVEL,
    differences_from_first,
    known_by_seed,
    paired_differences,
)
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.words import mean_with_sd
from fedcohort.statistics import BySeed, estimate

ByScheme: TypeAlias = Mapping[str, BySeed]


def by_scheme(
    schemes: Mapping[str, SchemeResults], quantity: Callable[[SchemeResults], Floats | None]
) -> ByScheme:
    """Return a quantity by scheme and seed, without what is not known."""
    found: dict[str, BySeed] = {}
    for name, scheme in schemes.items():
        by_seed = known_by_seed(scheme, quantity(scheme))
        if by_seed:
            found[name] = by_seed
    return found


def highest_first(values: ByScheme) -> list[str]:
    """Return the schemes in order of their means, the highest first."""
    return sorted(values, key=lambda name: -seed_mean(values[name]))


def seed_mean(values: BySeed) -> float:
    """Return the mean over seeds."""
    return sum(values.values()) / len(values)


def in_words(values: BySeed, digits: int = 3) -> str:
    """Return the mean over seeds with its standard deviation."""
    return mean_with_sd(np.array(list(values.values())), digits)


def all_equal(values: ByScheme) -> bool:
    """Return whether all schemes have the same value in every run."""
    first, *others = values.values()
    return all(first == other for other in others)


def compare(more: BySeed, less: BySeed, is_told_apart: bool) -> str:
    """Say whether the difference between two schemes is larger than chance explains."""
    difference = estimate(paired_differences(more, less))
    if difference.runs == 0:
        return "not compared, because they have no seed in common"
    if difference.runs == 1 and difference.mean == 0:
        return "the same in the only seed"
    if difference.runs == 1:
        return "one seed, so the difference may be chance"
    if difference.error == 0:
        return "the same difference in every run" if difference.mean else "the same in every run"
    if is_told_apart:
        return "a difference beyond the spread over seeds"
    return "a difference within the spread over seeds"


def told_apart(first: str, values: ByScheme) -> set[str]:
    """Return the schemes that the seeds can tell from the first of an order.

    Seeds that agree exactly show no spread, so they decide nothing.
    """
    found = differences_from_first(first, values)
    return {name for name, difference in found.items() if difference.p_value < LEVEL}
