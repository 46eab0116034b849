"""Whether failures last: how alike a client's answers are, by the rounds between them.

The covariance of two answers of a client, d rounds apart, is modelled as B + A r^d. B is how much
clients differ for good, A how much of a client's state lasts, and r how fast it is forgotten. The
intervals come from leaving out one tenth of the rounds after the other.
"""

from dataclasses import dataclass, replace
from math import inf, log, sqrt

import numpy as np

from fedcohort.advice.estimates import Interval, t975
from fedcohort.advice.log import FederationLog
from fedcohort.arrays import Floats

DECAYS = np.concatenate([np.linspace(0.1, 0.9, 17), [0.925, 0.95, 0.965, 0.975, 0.985]])
PARTS = 10
LONGEST_GAP = 80
LEAST_ROUNDS = 20
LEAST_PAIRS = 10  # of answers of one client


@dataclass(frozen=True)
class Persistence:
    """How a client's answers depend on its earlier ones.

    Attributes:
        next_round: Correlation of a client's answers in two successive rounds, beyond how
            clients differ for good.
        share: Share of a client's state that lasts, A over the variance within a client.
        decay: How much of it is left after a round, r.
        mean_rate: Mean of all answers.
        is_certain: Whether failures last for certain.
    """

    next_round: Interval
    share: float
    decay: float
    mean_rate: float
    is_certain: bool

    @property
    def upper_share(self) -> float:
        """The share, or 0 if it is certain that failures do not last."""
        return self.share if self.next_round.high > 0 else 0.0

    @property
    def memory(self) -> float:
        """Rounds after which a state is forgotten but for 1/e; 0 if failures do not last."""
        return -1 / log(self.decay) if self.is_certain else 0.0

    @property
    def off_rounds(self) -> float:
        """Mean rounds for which a client that fails stays away, at least 1."""
        if not self.is_certain or not self.mean_rate:
            return 1.0
        return max(1.0, 1 / ((1 - self.decay) * self.mean_rate))

    @property
    def on_rounds(self) -> float:
        """Mean rounds for which a client that answers goes on answering, at least 1."""
        if not self.is_certain or self.mean_rate >= 1:
            return 1.0
        return max(1.0, 1 / ((1 - self.decay) * (1 - self.mean_rate)))


NONE = Persistence(Interval(0.0, -inf, inf), 0.0, 0.5, 0.5, is_certain=False)


def estimate_persistence(log: FederationLog) -> Persistence:
    """Return how long failures last.

    Args:
        log: The log. Nothing is said of one with fewer than 20 rounds, with hardly a client that
            was asked twice, or in which every client always answers or never does.
    """
    rate = float(log.arrived.mean())
    nothing = replace(NONE, mean_rate=rate)
    answered = log.arrived_of_client
    varies = (answered > 0) & (answered < log.asked_of_client)
    # If no client ever changes, how clients differ explains everything.
    if log.num_rounds < LEAST_ROUNDS or not varies.any():
        return nothing
    products, pairs = _products(log, rate)
    pairs_without = pairs.sum() - pairs.sum(axis=1)
    if pairs.sum() < LEAST_PAIRS or not pairs_without.all():
        return nothing

    correlation, share, decay = _fit(products.sum(axis=0), pairs.sum(axis=0), rate)
    left_out = []
    for part in range(PARTS):
        kept = np.arange(PARTS) != part
        left_out.append(_fit(products[kept].sum(axis=0), pairs[kept].sum(axis=0), rate)[0])
    deviations = np.array(left_out) - np.mean(left_out)
    error = sqrt((PARTS - 1) / PARTS * float((deviations**2).sum()))
    margin = t975(PARTS - 1) * error
    interval = Interval(correlation, correlation - margin, correlation + margin).within(-1.0, 1.0)
    return Persistence(interval, share, decay, rate, is_certain=interval.is_above(0.0))


def _products(log: FederationLog, rate: float) -> tuple[Floats, Floats]:
    """Return sums of products of answers and their numbers, by tenth of the log and distance."""
    asked, arrived, _ = log.tables()
    centred = np.where(asked, arrived - rate, 0.0)
    longest = min(LONGEST_GAP, log.num_rounds // 2)
    part = np.arange(log.num_rounds) * PARTS // log.num_rounds
    products = np.zeros((PARTS, longest + 1))
    pairs = np.zeros((PARTS, longest + 1))
    for gap in range(1, longest + 1):
        per_round = (centred[:-gap] * centred[gap:]).sum(axis=1)
        count = (asked[:-gap] & asked[gap:]).sum(axis=1)
        products[:, gap] = np.bincount(part[:-gap], weights=per_round, minlength=PARTS)
        pairs[:, gap] = np.bincount(part[:-gap], weights=count, minlength=PARTS)
    return products, pairs


def _fit(products: Floats, pairs: Floats, rate: float) -> tuple[float, float, float]:
    """Return the correlation of successive rounds, the share A and the decay r."""
    gaps = np.flatnonzero(pairs > 0)
    weights = pairs[gaps]
    covariance = products[gaps] / weights
    best = (inf, 0.0, 0.5, 0.0)
    for decay in DECAYS:
        falling = decay**gaps
        mean_falling = np.average(falling, weights=weights)
        mean_covariance = np.average(covariance, weights=weights)
        spread = np.average((falling - mean_falling) ** 2, weights=weights)
        slope = 0.0
        if spread > 0:
            joint = (falling - mean_falling) * (covariance - mean_covariance)
            slope = float(np.average(joint, weights=weights) / spread)
        between = mean_covariance - slope * mean_falling
        if between < 0:  # clients cannot differ by less than nothing
            between = 0.0
            slope = float(np.average(falling * covariance, weights=weights))
            slope /= float(np.average(falling**2, weights=weights))
        errors = np.average((covariance - between - slope * falling) ** 2, weights=weights)
        if errors < best[0]:
            best = (float(errors), slope, float(decay), float(between))
    _, slope, decay, between = best
    within = max(rate * (1 - rate) - between, 1e-6)
    share = float(np.clip(slope / within, -1.0, 1.0))
    return share * decay, max(0.0, share), decay
