"""The rules `inverse`: weigh each update by the inverse of its chance to arrive.

An update counts if its client is asked, with inclusion probability p_i, and succeeds, with rate
rho_i. Weights share_i / (p_i rho_i) make the expected change that of all clients: the estimator of
Horvitz and Thompson. The normalised variant divides by the sum of the weights, which trades a
small bias for less noise (Hajek). Success rates are the true ones, or estimated.

Where the server knows who is offline, p_i is the probability of being asked while available. Then
rho_i must be the chance of being available times that of succeeding once asked. A true rate counts
both, because it counts the rounds in which the client is offline as failures; an estimate from
the rounds in which a client was asked needs the share of rounds in which it was available, too.
"""

import numpy as np

from fedcohort.aggregation.base import Arrivals, Rule, Setting
from fedcohort.arrays import Bools, Floats, State, pick

LEAST_RATE = 0.01  # a client that never answers would get an infinite weight
AVAILABILITY = ("rounds", "available")  # what an estimate counts of clients, asked or not


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
    needs_inclusion = True

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
    this one, so that the weight does not depend on the outcome that it weighs. It is multiplied by
    the share of rounds in which the client was available, this one included: 1 where nobody is
    known to be offline.

    The first estimate is 1/2, so the model moves twice as far as it should where everyone arrives
    in the first round.

    Args:
        setting: Sizes.
    """

    needs_inclusion = True
    client_arrays = ("asked", "succeeded", "rounds", "available")
    asked: Floats
    succeeded: Floats
    rounds: Floats  # since the client is known
    available: Floats  # how many of these rounds it could be asked in

    @staticmethod
    def initial_arrays(num_runs: int, num_clients: int) -> dict[str, Floats]:
        """Return the counts of clients that were never asked."""
        names = ("asked", "succeeded", *AVAILABILITY)
        return {name: np.zeros((num_runs, num_clients)) for name in names}

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return share_i / (p_i r_i a_i), where r_i and a_i are the estimates.

        Whoever is asked is available, so a_i counts this round, too. If a client is available with
        chance q, independently in each round, then 1{available} / a_i has the mean
        1 - (1 - q)^(t + 1) after t rounds, which soon is 1.
        """
        clients = np.maximum(arrivals.clients, 0)
        rates = (pick(self.succeeded, clients) + 1) / (pick(self.asked, clients) + 2)
        presence = (pick(self.available, clients) + 1) / (pick(self.rounds, clients) + 1)
        rates = rates * np.maximum(presence, LEAST_RATE)
        return np.asarray(arrivals.shares * arrivals.weights / rates)

    def learn(self, arrivals: Arrivals) -> None:
        """Count who was available, who was asked and who succeeded."""
        is_asked = arrivals.clients >= 0
        _add(self.asked, arrivals, is_asked)
        _add(self.succeeded, arrivals, is_asked & arrivals.valid)
        self.rounds += 1.0
        self.available += 1.0 if arrivals.available is None else arrivals.available

    def load_state_dict(self, state: State) -> None:
        """Continue where the state was taken; see `Rule.load_state_dict`.

        States of earlier versions do not count who was available. To go on with them, everyone
        counts as available in all rounds before.
        """
        if not any(name in state for name in AVAILABILITY):
            fresh = self.initial_arrays(*self.shape)
            state = {**state, **{name: fresh[name] for name in AVAILABILITY}}
        super().load_state_dict(state)


class InverseNormalisedEstimated(InverseEstimated):
    """Weigh by the inverse of inclusion and estimated success rate, divided by their sum."""

    normalises = True


def _add(counts: Floats, arrivals: Arrivals, counted: Bools) -> None:
    """Add 1 to the counts [R, K] of the clients that are counted [R, k]."""
    runs, positions = np.nonzero(counted)
    counts[runs, arrivals.clients[runs, positions]] += 1.0
