"""What claims are judged by: values by seed of trained runs, of the paper's own tables, and of selection without training."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.metrics import jain
from fedcohort.paper.cells import Quantity
from fedcohort.paper.published import table
from fedcohort.paper.setting import TASKS
from fedcohort.statistics import Estimate, estimate

BySeed = Mapping[int, float]
Trained = Callable[
    [str, str, str, float, int, Quantity], BySeed
]  # task, selector, partition, mu, cohort, quantity
# One seed decides nothing that is smaller than these. Rounds and accuracy: 1.645 standard deviations of Random against FedCS in
# three worlds of CIFAR-10, non-iid (0.19 in logs at 45 %; 0.017 in round 800). In three full worlds of the other network all
# pairs have 0.11 in logs at 45 % and 0.012 in the end (root mean square), the worst 0.20 and 0.020.
# Fairness: as many of pow-d, the only scheme that learning sways, in ten worlds of the digits, non-iid (0.011 in 2,500 rounds).
NOISE = {"rounds": 0.31, "accuracy": 0.028, "ratio": 0.005, "fairness": 0.018}


@dataclass(frozen=True, eq=False)
class Asked:
    """Who was asked and who answered under one scheme: successes [S, T] and counts [S, K], by seed."""

    seeds: tuple[int, ...]
    successes: Ints
    counts: Ints


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that is at hand; what is missing is empty.

    rounds: of the tasks as they were played; classes [K]: each client's class of success rates, the last the best;
    regret: the paper's bound less regret, by case and seed; datasets: what was played for each task; labels: how a task is
    called, if it was not played as the paper does; left_out: in words, which runs are not judged by.
    """

    trained: Trained
    rounds: Mapping[str, int]
    asked: Mapping[str, Asked] = field(default_factory=dict)
    classes: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cohort: int = 20
    regret: Mapping[str, Sequence[float]] = field(default_factory=dict)
    datasets: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out: Sequence[str] = ()


@dataclass(frozen=True)
class Check:
    """One comparison that a claim rests on: what, by how much it speaks for the claim, and the noise of one seed."""

    what: str
    support: Estimate
    noise: float = 0.0

    @property
    def verdict(self) -> str:
        """Holds or fails if the mean is beyond the one-sided 95 % limit; undecided if it is not."""
        if not self.support.runs:
            return "not run"
        margin = self.support.margin(self.noise)
        return (
            "holds"
            if self.support.mean > margin
            else "fails"
            if self.support.mean < -margin
            else "undecided"
        )


def paired(what: str, pair: Iterable[BySeed], noise: float, lead: float = 0.0) -> Check:
    """Return the check that the first of two values is above the second by more than a lead, over the seeds of both."""
    more, less = pair
    return Check(
        what, estimate([more[seed] - less[seed] - lead for seed in more if seed in less]), noise
    )


def log_rounds(values: BySeed, horizon: int) -> dict[int, float]:
    """Return logs of first rounds; an accuracy that is never reached counts as reached in twice the rounds played."""
    return {seed: log(value if value < inf else 2 * horizon) for seed, value in values.items()}


def published() -> Evidence:
    """Return the paper's own tables as evidence of one seed."""

    def trained(
        task: str, selector: str, partition: str, mu: float, cohort: int, quantity: Quantity
    ) -> BySeed:
        cell = table(task).get((selector, partition, mu), {}) if cohort == 20 else {}
        return {0: cell[quantity]} if quantity in cell else {}

    return Evidence(trained, {task: int(of["rounds"]) for task, of in TASKS.items()})


def success(of: Asked, cohort: int) -> dict[int, float]:
    """Return the share of the updates asked for that arrived, by seed."""
    return dict(zip(of.seeds, (of.successes.mean(axis=-1) / cohort).tolist(), strict=True))


def fairness(of: Asked, clients: Ints | None = None) -> dict[int, float]:
    """Return Jain's index of the times asked, of all clients or of these, by seed."""
    counts = of.counts if clients is None else of.counts[:, clients]
    return dict(zip(of.seeds, jain(counts).tolist(), strict=True))
