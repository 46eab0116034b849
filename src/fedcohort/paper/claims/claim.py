"""What a claim of the paper is, and the comparisons that decide it.

Each comparison has supports: by how much it speaks for the claim, once per world. Student's t
decides whether their mean differs from zero, with the noise of trained runs (see `noise`) or, for
other numbers, with the supports' own spread. Supports that are only bounds are decided by their
signs. P-values are two-sided and corrected by Holm's method over the comparisons of a claim.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, exp, inf, nan, sqrt

import numpy as np

from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.setting import TASKS
from fedcohort.statistics import BySeed, Noise, holm, sd
from fedcohort.students_t import t_p_value, t_quantile

LEVEL = 0.05
UNKNOWN = "cannot be told"
NOT_REACHED = "not reached"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Check:
    """One comparison that a claim rests on.

    Attributes:
        description: What is compared.
        supports: By how much it speaks for the claim, by world.
        unit: What supports count: "rounds" (in logs), "accuracy", or another word.
        noise: The noise of one support; None if the supports' own spread decides.
        by_signs: Whether supports are bounds, so that only their signs count.
        was_run: Whether there were runs to compare, even if they say nothing.
    """

    description: str
    supports: BySeed
    unit: str
    noise: Noise | None = None
    by_signs: bool = False
    was_run: bool = False

    @property
    def worlds(self) -> int:
        """Number of worlds."""
        return len(self.supports)

    @property
    def mean(self) -> float:
        """Mean support; nan without worlds."""
        if not self.supports:
            return nan
        return float(np.mean(list(self.supports.values())))

    @property
    def error_and_degrees(self) -> tuple[float, float]:
        """Standard error of the mean and its degrees of freedom, 0 if there is none."""
        if self.by_signs:
            return nan, 0
        if self.noise is not None:
            return sqrt(self.noise.variance / max(1, self.worlds)), self.noise.degrees
        if self.worlds < 2:
            return nan, 0
        spread = sd(np.array(list(self.supports.values())))
        if not spread and self.worlds < 3:
            return nan, 0  # two counts may agree by chance
        return spread / sqrt(self.worlds), self.worlds - 1

    @property
    def ratio(self) -> float:
        """Mean support in standard errors; the mean alone where the error is not known."""
        if self.by_signs:
            signs = np.sign(list(self.supports.values()))
            return float(signs.sum()) / sqrt(self.worlds)
        error, degrees = self.error_and_degrees
        if not degrees or not error:
            return self.mean
        return self.mean / error

    @property
    def p_value(self) -> float:
        """Two-sided, not corrected; 1 if there is no spread to compare with."""
        if self.by_signs:
            return sign_test(list(self.supports.values()))
        error, degrees = self.error_and_degrees
        if not self.supports or not degrees:
            return 1.0
        if not error:
            return float(self.mean == 0)
        return t_p_value(self.mean / error, degrees)

    def smallest_effect(self, comparisons: int) -> float:
        """Return the smallest mean that is told from zero as the first of so many comparisons."""
        error, degrees = self.error_and_degrees
        if not self.supports or not degrees:
            return inf
        return t_quantile(1 - LEVEL / (2 * comparisons), degrees) * error


@dataclass(frozen=True)
class Decision:
    """A comparison with its verdict.

    Attributes:
        check: The comparison.
        p_value: Corrected for all comparisons of the claim.
        smallest_effect: The smallest mean that these worlds could have shown.
    """

    check: Check
    p_value: float
    smallest_effect: float

    @property
    def verdict(self) -> str:
        """Holds, fails, cannot be told, not reached, or not run."""
        if not self.check.supports:
            return NOT_REACHED if self.check.was_run else NOT_RUN
        if self.p_value < LEVEL:  # a p that is no number decides nothing
            return "holds" if self.check.ratio > 0 else "fails"
        return UNKNOWN


def decide(checks: Sequence[Check]) -> list[Decision]:
    """Return the decisions on the comparisons of a claim; equal ones are corrected for once."""
    different: dict[tuple[object, ...], Check] = {}
    for check in checks:
        if check.supports:
            different.setdefault(_content(check), check)
    corrected = holm(np.array([check.p_value for check in different.values()]))
    p_values = dict(zip(different, corrected.tolist(), strict=True))
    decisions = []
    for check in checks:
        effect = check.smallest_effect(max(1, len(different)))
        decisions.append(Decision(check, p_values.get(_content(check), 1.0), effect))
    return decisions


def _content(check: Check) -> tuple[object, ...]:
    supports = tuple(sorted(check.supports.items()))
    return (check.unit, check.noise, check.by_signs, supports)


def sign_test(supports: Sequence[float]) -> float:
    """Return the two-sided p-value that both signs are equally likely; ties do not count.

    Examples:
        >>> sign_test([0.2, 0.5, 0.1, 0.4, 0.3, 0.9, 0.0])
        0.03125
    """
    above = sum(value > 0 for value in supports)
    below = sum(value < 0 for value in supports)
    count = above + below
    tail = sum(comb(count, number) for number in range(min(above, below) + 1))
    return min(1.0, 2 * tail / 2.0**count)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper.

    Attributes:
        name: A short name.
        section: The section of the paper that says it.
        quote: The sentence.
        statistic: The statistic that decides it, in words.
        checks: Yields the comparisons, given the evidence and one of the grounds.
        grounds: What the claim is about: tasks, "both tasks" or "selection".
        together: Number of neighbouring comparisons that make one case: all of them must hold.
        up_to: Whether one case is enough, because the paper says "up to"; otherwise all count.
        without_runs: What is said where there are no comparisons.
    """

    name: str
    section: str
    quote: str
    statistic: str
    checks: Callable[[Evidence, str], Iterator[Check]]
    grounds: tuple[str, ...] = tuple(TASKS)
    together: int = 1
    up_to: bool = False
    without_runs: Mapping[str, str] = field(default_factory=dict)


def compare(
    description: str,
    higher: BySeed,
    lower: BySeed,
    unit: str,
    noise: Noise | None = None,
    lead: float = 0.0,
    was_run: bool = False,
) -> Check:
    """Check that one value is above another by more than a lead, over the worlds of both."""
    supports = {}
    for seed in higher:
        if seed in lower:
            supports[seed] = higher[seed] - lower[seed] - lead
    return Check(description, supports, unit, noise, was_run=was_run)


def write_effect(size: float, unit: str) -> str:
    """Write a support or an effect in its unit: rounds as a factor, accuracies in points."""
    if size == inf or size != size:
        return "-"
    if unit == "rounds":
        return f"{exp(size):.2f}×"
    if unit == "accuracy":
        return f"{100 * size:+.2f} points"
    return f"{size:+.3g}"
