"""How often each client answers, shrunk towards the others where little is known.

Client i answers x_i of n_i questions. Its rate is drawn from a Beta distribution that all clients
share; mean and concentration of that distribution are integrated over a grid, so that the
intervals allow for not knowing it. Failures that last carry less information: x and n are divided
by how much such a sequence repeats itself.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import Interval, from_draws
from fedcohort.advice.log import FederationLog
from fedcohort.advice.persistence import Persistence
from fedcohort.advice.special_functions import log_gamma
from fedcohort.arrays import Floats

MEANS = np.linspace(0.01, 0.99, 50)
CONCENTRATIONS = np.geomspace(0.3, 1000.0, 36)
MOST_FITTED = 500  # clients that decide the shared distribution
MOST_VALUES = 2_000_000  # draws in all


@dataclass(frozen=True, eq=False)
class Rates:
    """How often clients answer.

    Attributes:
        mean: Estimated rate of each client [K].
        low: Lower end of its 95 % interval [K].
        high: Upper end [K].
        draws: Draws from the posterior [D, K].
    """

    mean: Floats
    low: Floats
    high: Floats
    draws: Floats

    @property
    def spread(self) -> Interval:
        """Standard deviation of the rates over clients."""
        return from_draws(self.draws.std(axis=1))


def estimate_rates(
    log: FederationLog, persistence: Persistence, rng: np.random.Generator, draws: int = 2000
) -> Rates:
    """Return the rate of every client.

    Args:
        log: The log.
        persistence: How long failures last.
        rng: Source of the draws.
        draws: Draws from the posterior; fewer of very many clients.
    """
    repetition = repetitions(log, persistence)
    asked = log.asked_of_client / repetition
    arrived = log.arrived_of_client / repetition
    return fit_rates(asked, arrived, rng, draws)


def fit_rates(asked: Floats, arrived: Floats, rng: np.random.Generator, draws: int = 2000) -> Rates:
    """Return rates from counts.

    Args:
        asked: How often each client was asked [K].
        arrived: How often it answered [K].
        rng: Source of the draws.
        draws: Draws from the posterior.

    Examples:
        >>> counts = np.array([0.0, 4.0, 400.0])
        >>> rates = fit_rates(counts, counts / 2, np.random.default_rng(0))
        >>> bool(rates.high[0] - rates.low[0] > rates.high[2] - rates.low[2])
        True
    """
    clients = len(asked)
    draws = max(200, min(draws, MOST_VALUES // clients))
    chosen = np.arange(clients)
    if clients > MOST_FITTED:  # drawn, because neighbours may be alike
        known = np.flatnonzero(asked)
        chosen = rng.choice(known, size=min(MOST_FITTED, len(known)), replace=False)
    weights = _grid_weights(asked[chosen], arrived[chosen])
    picks = rng.choice(weights.size, size=draws, p=weights.ravel())
    mean = MEANS[picks // len(CONCENTRATIONS)][:, None]
    concentration = CONCENTRATIONS[picks % len(CONCENTRATIONS)][:, None]
    above = mean * concentration + arrived
    below = (1 - mean) * concentration + asked - arrived
    rates = rng.beta(above, below)
    low, high = np.quantile(rates, [0.025, 0.975], axis=0)
    return Rates((above / (above + below)).mean(axis=0), low, high, rates)


def _grid_weights(asked: Floats, arrived: Floats) -> Floats:
    """Return the posterior of mean and concentration on the grid [M, C]; it sums to 1."""
    pairs, counts = np.unique(np.stack([asked, arrived]), axis=1, return_counts=True)
    a = (MEANS[:, None] * CONCENTRATIONS)[..., None]
    b = ((1 - MEANS)[:, None] * CONCENTRATIONS)[..., None]
    n, x = pairs
    together = log_gamma(a + x) + log_gamma(b + n - x) - log_gamma(a + b + n)
    alone = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    likelihood = ((together - alone) * counts).sum(axis=-1)
    weights = np.exp(likelihood - likelihood.max())
    return np.asarray(weights / weights.sum())


def repetitions(log: FederationLog, persistence: Persistence) -> Floats:
    """Return by how much the answers of each client repeat each other [K]; 1 if not at all.

    The variance of a mean of n answers with correlations r_d at distance d is (1 + 2/n sum r_d)
    times that of independent answers.

    Args:
        log: The log.
        persistence: Share and decay of the correlations.
    """
    share = persistence.upper_share
    decay = persistence.decay
    if not share:
        return np.ones(log.num_clients)
    order = np.lexsort((log.round, log.client))
    client = log.client[order]
    round = log.round[order]
    # The sum over earlier answers of decay^distance, from one answer to the next.
    sums = np.zeros(log.num_clients)
    total = np.zeros(log.num_clients)
    last = np.full(log.num_clients, -1)
    for i, t in zip(client.tolist(), round.tolist(), strict=True):
        if last[i] >= 0:
            sums[i] = (sums[i] + 1) * decay ** (t - last[i])
            total[i] += sums[i]
        last[i] = t
    return np.asarray(1 + 2 * share * total / np.maximum(log.asked_of_client, 1))
