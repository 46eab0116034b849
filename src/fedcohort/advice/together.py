"""Whether clients fail together: how alike the answers of one round are."""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import UNKNOWN, Interval, ratio_interval, sum_by
from fedcohort.advice.log import FederationLog
from fedcohort.advice.own_rates import group_rounds, shrink_rates
from fedcohort.arrays import Floats, Ints

LEAST = 0.005  # a smaller correlation changes nothing, and shrunk rates may feign one


@dataclass(frozen=True)
class Together:
    """How the answers of a round depend on each other.

    Attributes:
        correlation: Mean correlation of two clients that are asked in the same round.
        is_certain: Whether clients fail together for certain, by more than next to nothing.
    """

    correlation: Interval
    is_certain: bool


def estimate_together(log: FederationLog, rates: Floats, weights: Floats, block: int) -> Together:
    """Return whether clients fail together; nothing is said if too many deadlines differ.

    Args:
        log: The log.
        rates: How often each client answers [K].
        weights: Resamples of the rounds [B, T].
        block: Rounds per block of the resamples.
    """
    group = group_rounds(log)
    if group is None:
        return Together(UNKNOWN, is_certain=False)
    groups = int(group.max()) + 1
    cell = groups * log.client + group[log.round]  # a client under one deadline
    asked = np.bincount(cell, minlength=groups * log.num_clients)
    answered = np.bincount(cell[log.arrived], minlength=groups * log.num_clients)
    varies = (answered > 0) & (answered < asked)
    # A client that always or never answers shares its luck with nobody.
    counts = varies[cell]
    if not counts.any():
        return Together(UNKNOWN, is_certain=False)
    own = rates[log.client]
    if groups > 1:
        own = _rates_at_deadlines(asked, answered, groups)[cell]
    scale = np.clip(own, 0.02, 0.98)
    scores = counts * (log.arrived - own) / np.sqrt(scale * (1 - scale))
    sums = sum_by(log.round, scores, log.num_rounds)
    squares = sum_by(log.round, scores**2, log.num_rounds)
    in_round = sum_by(log.round, counts, log.num_rounds)
    pairs = in_round * (in_round - 1)
    correlation = ratio_interval(sums**2 - squares, pairs, weights, block).within(-1.0, 1.0)
    is_certain = correlation.is_above(0.0) and correlation.value >= LEAST
    return Together(correlation, is_certain=is_certain)


def _rates_at_deadlines(asked: Ints, answered: Ints, groups: int) -> Floats:
    """Return how often each client answers under each deadline, in the order of the counts."""
    rates = np.zeros(len(asked))
    for group in range(groups):
        places = np.arange(group, len(asked), groups)
        places = places[asked[places] > 0]
        own = shrink_rates(asked[places].astype(float), answered[places].astype(float))
        rates[places] = own.mean
    return rates
