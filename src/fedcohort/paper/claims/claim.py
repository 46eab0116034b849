"""What a claim of the paper is, and the comparisons that decide it.

Each comparison has supports: by how much it speaks for the claim, once per world. One statistic
decides all of them. The spread comes from a two-way layout, scheme and world, pooled over all
schemes and groups of a task; a comparison between numbers of other kinds has its own spread.
P-values are two-sided and corrected by Holm's method over the comparisons of a claim.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log, nan, sqrt

import numpy as np

from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.setting import TASKS
from fedcohort.statistics import holm
from fedcohort.students_t import t_p_value, t_quantile

BySeed = Mapping[int, float]
LEVEL = 0.05
UNKNOWN = "cannot be told"
UNITS = ("rounds", "accuracy", "ratio", "fairness", "times", "updates")


@dataclass(frozen=True)
class Noise:
    """The spread of one run once its scheme and its world are known.

    Attributes:
        variance: Pooled variance of the residuals.
        degrees: Degrees of freedom.
    """

    variance: float
    degrees: int


def pool(layouts: Iterable[Mapping[str, BySeed]]) -> Noise:
    """Return the noise of two-way layouts, each with effects of its schemes and its worlds.

    Schemes whose values are equal in all worlds are one scheme: E3CS-0 and E3CS-inc are, until
    a quarter of the rounds.

    Args:
        layouts: Values by scheme and world, one layout for each group of runs.

    Examples:
        >>> pool([{"a": {0: 1.0, 1: 2.0}, "b": {0: 3.0, 1: 6.0}}])
        Noise(variance=1.0, degrees=1)
    """
    squares = 0.0
    degrees = 0
    for layout in layouts:
        different = {tuple(sorted(values.items())): values for values in layout.values() if values}
        found, freedom = _residuals(list(different.values()))
        squares += found
        degrees += freedom
    if not degrees:
        return Noise(nan, 0)
    return Noise(round(squares / degrees, 15), degrees)


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


@dataclass(frozen=True)
class Check:
    """One comparison that a claim rests on.

    Attributes:
        description: What is compared.
        supports: By how much it speaks for the claim, by world.
        unit: One of UNITS; rounds are in logs.
        noise: The pooled noise of one run; None if the supports' own spread decides.
        runs: Number of runs that each support is made of.
    """

    description: str
    supports: BySeed
    unit: str
    noise: Noise | None = None
    runs: int = 2

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
    def error_and_degrees(self) -> tuple[float, int]:
        """Standard error of the mean and its degrees of freedom, 0 if there is none."""
        if self.noise is not None:
            return sqrt(self.runs * self.noise.variance / max(1, self.worlds)), self.noise.degrees
        if self.worlds < 2:
            return nan, 0
        spread = float(np.std(list(self.supports.values()), ddof=1))
        if not spread and self.worlds < 3:
            return nan, 0  # two counts may agree by chance
        return spread / sqrt(self.worlds), self.worlds - 1

    @property
    def p_value(self) -> float:
        """Two-sided, not corrected; 1 if there is no spread to compare with."""
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
        """Holds, fails, cannot be told, or not run."""
        if not self.check.supports:
            return "not run"
        if self.p_value >= LEVEL:
            return UNKNOWN
        return "holds" if self.check.mean > 0 else "fails"


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
    return (check.unit, check.runs, check.noise, tuple(sorted(check.supports.items())))


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
        candidates: Comparisons of one candidate if one candidate is enough ("up to"); 0 if the
            claim needs all comparisons.
        without_runs: What is said where there are no comparisons.
    """

    name: str
    section: str
    quote: str
    statistic: str
    checks: Callable[[Evidence, str], Iterator[Check]]
    grounds: tuple[str, ...] = tuple(TASKS)
    candidates: int = 0
    without_runs: Mapping[str, str] = field(default_factory=dict)


def compare(
    description: str,
    higher: BySeed,
    lower: BySeed,
    unit: str,
    noise: Noise | None = None,
    lead: float = 0.0,
    runs: int = 2,
) -> Check:
    """Check that one value is above another by more than a lead, over the worlds of both."""
    supports = {}
    for seed in higher:
        if seed in lower:
            supports[seed] = higher[seed] - lower[seed] - lead
    return Check(description, supports, unit, noise, runs)


def log_rounds(first_rounds: BySeed, horizon: int) -> dict[int, float]:
    """Return logs of first rounds; never counts as the last round, the least that it can mean."""
    logs = {}
    for seed, round in first_rounds.items():
        logs[seed] = log(min(round, horizon))
    return logs


def write_effect(size: float, unit: str) -> str:
    """Write a support or an effect in its unit: rounds as a factor, accuracies in points."""
    if size == inf or size != size:
        return "-"
    if unit == "rounds":
        return f"{exp(size):.2f}×"
    if unit == "accuracy":
        return f"{100 * size:+.2f} points"
    return f"{size:+.3g}"
