"""What a claim of the paper is, and the comparisons that decide it.

Each comparison has a support: by how much it speaks for the claim, once per seed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, log

from fedcohort.paper.claims.evidence import Evidence
from fedcohort.paper.setting import TASKS
from fedcohort.statistics import Estimate, estimate

BySeed = Mapping[int, float]

# One seed decides nothing that is smaller than these.
# Rounds and accuracy: 1.645 standard deviations of Random against FedCS in three worlds of
# CIFAR-10, non-iid (0.19 in logs at 45 %; 0.017 in round 800). In three full worlds of the other
# network all pairs have 0.11 in logs at 45 % and 0.012 in the end (root mean square), the worst
# 0.20 and 0.020.
# Fairness: 1.645 standard deviations of pow-d, the only scheme that depends on learning, in ten
# worlds of the digits, non-iid (0.011 in 2,500 rounds).
NOISE = {"rounds": 0.31, "accuracy": 0.028, "ratio": 0.005, "fairness": 0.018}


@dataclass(frozen=True)
class Check:
    """One comparison that a claim rests on.

    Attributes:
        description: What is compared.
        support: By how much it speaks for the claim, estimated over seeds.
        noise: The support that a single seed shows by chance.
    """

    description: str
    support: Estimate
    noise: float = 0.0

    @property
    def verdict(self) -> str:
        """Holds or fails if the mean is beyond the one-sided 95 % limit; else undecided."""
        if not self.support.runs:
            return "not run"
        margin = self.support.margin(self.noise)
        if self.support.mean > margin:
            return "holds"
        if self.support.mean < -margin:
            return "fails"
        return "undecided"


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
    """

    name: str
    section: str
    quote: str
    statistic: str
    checks: Callable[[Evidence, str], Iterator[Check]]
    grounds: tuple[str, ...] = tuple(TASKS)


def compare(
    description: str, higher: BySeed, lower: BySeed, noise: float, lead: float = 0.0
) -> Check:
    """Check that one value is above another by more than a lead, over the seeds of both."""
    differences = []
    for seed in higher:
        if seed in lower:
            differences.append(higher[seed] - lower[seed] - lead)
    return Check(description, estimate(differences), noise)


def log_rounds(first_rounds: BySeed, horizon: int) -> dict[int, float]:
    """Return logs of first rounds; never counts as twice the rounds that were played."""
    logs = {}
    for seed, round in first_rounds.items():
        if round == inf:
            round = 2 * horizon
        logs[seed] = log(round)
    return logs
