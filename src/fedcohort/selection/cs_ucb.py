"""CS-UCB and CS-UCB-Q: upper confidence bounds on how quickly clients answer.

    r_i reward 1 - seconds / deadline, 0 without an answer; z_i how often client i was asked;
    t round counted from 1; D_i debt; c guaranteed rate; beta weight of the debts

CS-UCB asks the k available clients with the largest mean reward + sqrt((k + 1) ln t / z_i).
CS-UCB-Q guarantees everyone a rate c: debts grow, D <- max(D + c - 1{asked}, 0), and the k with
the largest (1 - beta) min(mean + sqrt(2 ln t / z_i), 1) + beta D_i are asked. The slowest time
of the papers' reward is the deadline here, and no answer counts as the slowest.
"""

from math import log
from typing import ClassVar

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.checks import check_positive, check_range
from fedcohort.rng import RngLike
from fedcohort.selection.availability import highest
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import COUNT, Bounds


class CSUCB(BaseSelector):
    """Ask the clients with the highest upper bound on their speed; first those never asked.

    Chance only breaks ties, so inclusion is 1.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        deadline: Seconds after which the server stops waiting.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Attributes:
        asks: How often each client was asked, shape [..., K].
        rewards: Sum of each client's rewards, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = CSUCB(4, 2, deadline=10.0, rng=0)
        >>> first = selector.select(0)
        >>> selector.update(Outcome(first, success=[1, 1], seconds=[2.0, 8.0]))
        >>> selector.rewards[first.clients].round(1).tolist()
        [0.8, 0.2]
    """

    needs_seconds = True
    needs_deadline = True
    client_arrays: ClassVar[tuple[str, ...]] = ("asks", "rewards")
    array_bounds: ClassVar[Bounds] = {"asks": COUNT, "rewards": COUNT}
    newcomer_values: ClassVar[dict[str, float]] = {"asks": 0.0, "rewards": 0.0}

    def __init__(
        self, num_clients: int, cohort_size: int, *, deadline: float, rng: RngLike
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.deadline = check_positive("deadline", deadline)
        self.asks: Floats = np.zeros(self.shape)
        self.rewards: Floats = np.zeros(self.shape)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Take the highest scores."""
        clients = highest(self.scores(round), size, present, self.rng)
        return clients, np.ones(clients.shape)

    def scores(self, round: int) -> Floats:
        """Return the score of every client [..., K]; infinite if it was never asked."""
        return self.bounds(round, self.cohort_size + 1)

    def bounds(self, round: int, breadth: float) -> Floats:
        """Return mean reward + sqrt(breadth ln t / z), [..., K]; infinite for z = 0."""
        asks = np.maximum(self.asks, 1)
        width = np.sqrt(breadth * log(round + 1) / asks)
        return np.where(self.asks > 0, self.rewards / asks + width, np.inf)

    def learn(self, outcome: Outcome) -> None:
        """Count the reward of every client that was asked and waited for."""
        clients = outcome.cohort.clients
        speed = np.maximum(1 - np.asarray(outcome.seconds) / self.deadline, 0.0)
        place(self.asks, clients, pick(self.asks, clients) + outcome.observed)
        place(self.rewards, clients, pick(self.rewards, clients) + outcome.success * speed)


class CSUCBQ(CSUCB):
    """CS-UCB with a guaranteed rate for everyone, kept by debts.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        deadline: Seconds after which the server stops waiting.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        quota: Guaranteed rate c as a fraction of a fair share k/K, in [0, 1].
        fairness: Weight of the debts beside the bounds, beta, in [0, 1].

    Attributes:
        debts: By how many rounds each client lags behind its rate, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = CSUCBQ(4, 2, deadline=10.0, rng=0, quota=0.5)
        >>> cohort = selector.select(0, available=[0, 1])
        >>> selector.update(Outcome(cohort, success=[1, 1], seconds=[2.0, 8.0]))
        >>> selector.debts.tolist()
        [0.0, 0.0, 0.25, 0.25]
    """

    client_arrays = ("asks", "rewards", "debts")
    array_bounds: ClassVar[Bounds] = {**CSUCB.array_bounds, "debts": COUNT}
    newcomer_values: ClassVar[dict[str, float]] = {**CSUCB.newcomer_values, "debts": 0.0}

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        deadline: float,
        rng: RngLike,
        quota: float = 0.5,
        fairness: float = 0.5,
    ) -> None:
        super().__init__(num_clients, cohort_size, deadline=deadline, rng=rng)
        self.quota = check_range("quota", quota, 0.0, 1.0)
        self.fairness = check_range("fairness", fairness, 0.0, 1.0)
        self.debts: Floats = np.zeros(self.shape)

    def scores(self, round: int) -> Floats:
        """Return bounds of at most 1 and debts, weighted, [..., K]."""
        bounds = np.minimum(self.bounds(round, 2), 1.0)
        return (1 - self.fairness) * bounds + self.fairness * self.debts

    def learn(self, outcome: Outcome) -> None:
        """Count the rewards and move the debts; skip a round with nobody there."""
        super().learn(outcome)
        rate = self.quota * self.cohort_size / self.num_clients
        self.debts = grow_debts(self.debts, rate, outcome.cohort.clients)


def grow_debts(debts: Floats, rate: float, asked: Ints) -> Floats:
    """Return max(debts + rate - 1{asked}, 0), [..., K]; the same debts if nobody was asked."""
    if not asked.size:
        return debts
    grown = debts + rate
    place(grown, asked, np.maximum(pick(grown, asked) - 1, 0.0))
    return grown
