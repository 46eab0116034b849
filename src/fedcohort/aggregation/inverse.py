"""The rules `inverse`: weigh each update by the inverse of its chance to arrive.

An update counts if its client is asked, with inclusion probability p_i, and succeeds, with rate
rho_i. Weights share_i / (p_i rho_i) make the expected change that of all clients: the estimator of
Horvitz and Thompson. The normalised variant divides by the sum of the weights, which trades a
small bias for less noise (Hajek). Success rates are the true ones, or estimated.
"""

import numpy as np

from fedcohort.aggregation.base import Arrivals, Rule, Setting
from fedcohort.arrays import Bools, Floats, pick

LEAST_RATE = 0.01  # a client that never answers would get an infinite weight


class Inverse(Rule):
    """Weigh by the inverse of inclusion probability and true success rate.

    Its expected change is that of a round in which everybody arrives, if the inclusion
    probabilities and success rates are true.

    Args:
        setting: Sizes and the true success rates [R, K]. Rates below 0.01 count as 0.01.

    Raises:
        ValueError: If there are no success rates.
    """

    needs_rates = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        rates = np.broadcast_to(np.asarray(setting.success_rates), self.shape)
        self.rates = np.maximum(rates, LEAST_RATE)

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return share_i / (p_i rho_i)."""
        rates = pick(self.rates, np.maximum(arrivals.clients, 0))
        return np.asarray(arrivals.shares * arrivals.weights / rates)


class InverseNormalised(Inverse):
    """Weigh by the inverse of inclusion and true success rate, divided by their sum."""

    normalises = True


class InverseEstimated(Rule):
    """Weigh by the inverse of inclusion probability and estimated success rate.

    A client that succeeded s of n times has the estimate (s + 1) / (n + 2), from the rounds before
    this one, so that the weight does not depend on the outcome that it weighs.

    Args:
        setting: Sizes.
    """

    client_arrays = ("asked", "succeeded")
    asked: Floats
    succeeded: Floats

    @staticmethod
    def initial_arrays(num_runs: int, num_clients: int) -> dict[str, Floats]:
        """Return the counts of clients that were never asked."""
        shape = (num_runs, num_clients)
        return {"asked": np.zeros(shape), "succeeded": np.zeros(shape)}

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return share_i / (p_i r_i), where r_i is the estimate."""
        clients = np.maximum(arrivals.clients, 0)
        rates = (pick(self.succeeded, clients) + 1) / (pick(self.asked, clients) + 2)
        return np.asarray(arrivals.shares * arrivals.weights / rates)

    def learn(self, arrivals: Arrivals) -> None:
        """Count who was asked and who succeeded."""
        is_asked = arrivals.clients >= 0
        _add(self.asked, arrivals, is_asked)
        _add(self.succeeded, arrivals, is_asked & arrivals.valid)


class InverseNormalisedEstimated(InverseEstimated):
    """Weigh by the inverse of inclusion and estimated success rate, divided by their sum."""

    normalises = True


def _add(counts: Floats, arrivals: Arrivals, counted: Bools) -> None:
    """Add 1 to the counts [R, K] of the clients that are counted [R, k]."""
    runs, positions = np.nonzero(counted)
    counts[runs, arrivals.clients[runs, positions]] += 1.0
