"""The rule `fedau`: weigh each update by how rarely its client takes part (FedAU)."""

import numpy as np

from fedcohort.aggregation.base import Arrivals, Rule
from fedcohort.arrays import Floats, pick

LONGEST_INTERVAL = 50  # rounds; a longer absence is cut, so that no weight explodes


class FedAU(Rule):
    """Weigh by the client's average number of rounds between two updates that count.

    For a client that takes part with probability q in every round this average approaches 1/q, so
    the rule needs neither inclusion probabilities nor success rates. An interval of 50 rounds
    without an update is cut there and counts as complete.

    The interval that ends with an update counts in the weight of this update. In the authors' code
    it counts from the next round on, and the weight is 1 until an interval is complete: an update
    that first arrives in the tenth round counts ten times here and once there. In the long run
    the mean weights are the same; early on, those here are closer to the inverse of q.

    Args:
        setting: Sizes.
    """

    client_arrays = ("waiting", "intervals", "total")
    waiting: Floats  # rounds since the last interval ended
    intervals: Floats  # number of complete intervals
    total: Floats  # rounds in all complete intervals

    @staticmethod
    def initial_arrays(num_runs: int, num_clients: int) -> dict[str, Floats]:
        """Return the intervals of clients that were never heard of: none."""
        names = ("waiting", "intervals", "total")
        return {name: np.zeros((num_runs, num_clients)) for name in names}

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return share_i times the average interval, the one that ends now included."""
        clients = np.maximum(arrivals.clients, 0)
        total = pick(self.total, clients) + pick(self.waiting, clients) + 1
        intervals = pick(self.intervals, clients) + 1
        return np.asarray(arrivals.shares * total / intervals)

    def learn(self, arrivals: Arrivals) -> None:
        """Let every client wait one round more, and end the intervals of those that arrived."""
        self.waiting += 1
        ends = self.waiting >= LONGEST_INTERVAL
        runs, positions = np.nonzero(arrivals.valid)
        ends[runs, arrivals.clients[runs, positions]] = True

        self.total += np.where(ends, self.waiting, 0.0)
        self.intervals += ends
        self.waiting[ends] = 0.0
