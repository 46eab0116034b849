"""RBCS-F: the quickest cohort, by optimistic estimates, that pays the debts to clients.

    tau_i lower bound on the time of client i, z_i debt, beta guaranteed rate, V trade-off,
    n_i how often client i was asked

The cohort minimises V max tau - sum z over the cohort: for each bound on the time, the k clients
below it with the largest debts are best, so that one pass over the clients in order of their
time finds the optimum. Debts grow, z <- max(z + beta - 1{asked}, 0).

Times are fractions of the deadline, and no answer counts as 1. The authors estimate a client's
time from a context that changes in every round. A server that is told seconds alone has a
constant one, for which their ridge regression per client is a mean pulled towards 0:
tau_i = max(sum of times / (1 + n_i) - alpha / sqrt(1 + n_i), 0).
"""

from typing import ClassVar

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, pick, place
from fedcohort.checks import LARGEST_FLOAT, check_positive, check_range
from fedcohort.rng import RngLike
from fedcohort.selection.availability import highest
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.cs_ucb import grow_debts
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.state import COUNT, Bounds

TIE = 1e-9  # sums of debts that differ by less are equal but for rounding


class RBCSF(BaseSelector):
    """Ask the cohort with the best trade-off between its slowest client and its debts.

    Chance only breaks ties, so inclusion is 1.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        deadline: Seconds after which the server stops waiting.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.
        quota: Guaranteed rate beta as a fraction of a fair share k/K, in [0, 1].
        tradeoff: V, how many debts of one round weigh as much as one deadline; by default k.
        exploration: alpha, how optimistic the times of clients seldom asked are.

    Attributes:
        asks: How often each client was asked, shape [..., K].
        times: Sum of each client's times as fractions of the deadline, shape [..., K].
        debts: By how many rounds each client lags behind its rate, shape [..., K].

    Raises:
        ValueError: If an argument is out of bounds.

    Examples:
        >>> selector = RBCSF(4, 2, deadline=10.0, rng=0)
        >>> cohort = selector.select(0, available=[0, 1])
        >>> selector.update(Outcome(cohort, success=[1, 0], seconds=[4.0, 10.0]))
        >>> selector.times.tolist()
        [0.4, 1.0, 0.0, 0.0]
    """

    needs_seconds = True
    needs_deadline = True
    client_arrays = ("asks", "times", "debts")
    array_bounds: ClassVar[Bounds] = {"asks": COUNT, "times": COUNT, "debts": COUNT}
    newcomer_values: ClassVar[dict[str, float]] = {"asks": 0.0, "times": 0.0, "debts": 0.0}

    def __init__(
        self,
        num_clients: int,
        cohort_size: int,
        *,
        deadline: float,
        rng: RngLike,
        quota: float = 0.5,
        tradeoff: float | None = None,
        exploration: float = 0.5,
    ) -> None:
        super().__init__(num_clients, cohort_size, rng=rng)
        self.deadline = check_positive("deadline", deadline)
        self.quota = check_range("quota", quota, 0.0, 1.0)
        if tradeoff is None:
            tradeoff = float(cohort_size)
        self.tradeoff = check_range("tradeoff", tradeoff, 0.0, LARGEST_FLOAT)
        self.exploration = check_range("exploration", exploration, 0.0, LARGEST_FLOAT)
        self.asks: Floats = np.zeros(self.shape)
        self.times: Floats = np.zeros(self.shape)
        self.debts: Floats = np.zeros(self.shape)

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Find the best bound on the time, then take the largest debts below it."""
        times = self.optimistic_times()
        candidates = np.zeros(self.shape, dtype=np.bool_)
        for row in np.ndindex(self.batch):
            ids = np.arange(self.num_clients)
            if present is not None:
                ids = np.flatnonzero(present[row])
            if size:
                limit = self._best_limit(times[row][ids], self.debts[row][ids], size)
                candidates[row][ids] = times[row][ids] <= limit
        clients = highest(self.debts, size, candidates, self.rng)
        return clients, np.ones(clients.shape)

    def optimistic_times(self) -> Floats:
        """Return tau, the lower bounds on the times, [..., K]."""
        weight = 1 + self.asks
        return np.maximum(self.times / weight - self.exploration / np.sqrt(weight), 0.0)

    def learn(self, outcome: Outcome) -> None:
        """Add the times and move the debts; skip a round with nobody there."""
        clients = outcome.cohort.clients
        fraction = np.minimum(np.asarray(outcome.seconds) / self.deadline, 1.0)
        time = np.where(outcome.success > 0, fraction, 1.0)
        place(self.asks, clients, pick(self.asks, clients) + outcome.observed)
        place(self.times, clients, pick(self.times, clients) + time * outcome.observed)

        rate = self.quota * self.cohort_size / self.num_clients
        self.debts = grow_debts(self.debts, rate, clients)

    def _best_limit(self, times: Floats, debts: Floats, size: int) -> float:
        """Return the bound on the time of the best cohort; the smallest of equally good ones."""
        order = np.argsort(times, kind="stable")
        slowest = times[order][size - 1 :]
        paid = sums_of_largest(debts[order], size)[size - 1 :]
        cost = self.tradeoff * slowest - paid
        is_best = cost <= cost.min() + TIE
        return float(slowest[np.argmax(is_best)])


def sums_of_largest(values: Floats, count: int) -> Floats:
    """Return, for every j, the sum of the `count` largest of the first j + 1 values.

    All prefixes descend together through the binary digits of the values' ranks, from the
    highest. In each step a prefix stays with the upper half of its ranks if that holds enough
    values; otherwise it takes the whole upper half and goes on in the lower one. Within a level
    the values stand sorted by their higher digits, so that the values of one prefix with equal
    higher digits are neighbours.

    Args:
        values: The values [n].
        count: Number of values in each sum, at least 1.

    Returns:
        The sums [n]; of all values where a prefix has fewer than `count`.

    Examples:
        >>> sums_of_largest(np.array([3.0, 1.0, 2.0, 5.0]), 2).tolist()
        [3.0, 4.0, 5.0, 8.0]
    """
    size = values.size
    ranks = np.empty(size, dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(size)

    starts = np.zeros(size, dtype=np.int64)
    ends = np.arange(1, size + 1)
    missing = np.full(size, count)
    sums = np.zeros(size)
    for digit in reversed(range((size - 1).bit_length())):
        is_upper = (ranks >> digit) & 1 == 1
        uppers = _running(is_upper.astype(np.int64))
        upper_sums = _running(np.where(is_upper, values, 0.0))
        found = uppers[ends] - uppers[starts]
        is_enough = found >= missing

        sums += np.where(is_enough, 0.0, upper_sums[ends] - upper_sums[starts])
        missing -= np.where(is_enough, 0, found)
        first_upper = size - uppers[-1]
        starts = np.where(is_enough, first_upper + uppers[starts], starts - uppers[starts])
        ends = np.where(is_enough, first_upper + uppers[ends], ends - uppers[ends])
        ranks = np.concatenate([ranks[~is_upper], ranks[is_upper]])
        values = np.concatenate([values[~is_upper], values[is_upper]])

    # At most one value is left per prefix.
    left = _running(values)
    return sums + np.where(missing > 0, left[ends] - left[starts], 0.0)


def _running(values: Floats | Ints) -> Floats | Ints:
    """Return the sums of the first 0, 1, ..., n values."""
    return np.concatenate([np.zeros(1, dtype=values.dtype), np.cumsum(values)])
