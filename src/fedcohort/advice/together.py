"""Whether clients fail together: how alike the answers of one round are."""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import UNKNOWN, Interval, ratio_interval, sum_by
from fedcohort.advice.log import FederationLog
from fedcohort.arrays import Floats


@dataclass(frozen=True)
class Together:
    """How the answers of a round depend on each other.

    Attributes:
        correlation: Mean correlation of two clients that are asked in the same round.
        is_certain: Whether clients fail together for certain.
    """

    correlation: Interval
    is_certain: bool


def estimate_together(log: FederationLog, rates: Floats, weights: Floats, block: int) -> Together:
    """Return whether clients fail together.

    Args:
        log: The log.
        rates: How often each client answers [K].
        weights: Resamples of the rounds [B, T].
        block: Rounds per block of the resamples.
    """
    if log.arrived.all() or not log.arrived.any():
        return Together(UNKNOWN, is_certain=False)  # without two outcomes nothing can differ
    own = np.clip(rates[log.client], 0.02, 0.98)
    scores = (log.arrived - own) / np.sqrt(own * (1 - own))
    sums = sum_by(log.round, scores, log.num_rounds)
    squares = sum_by(log.round, scores**2, log.num_rounds)
    pairs = log.asked_in_round * (log.asked_in_round - 1)
    correlation = ratio_interval(sums**2 - squares, pairs, weights, block).within(-1.0, 1.0)
    return Together(correlation, is_certain=correlation.is_above(0.0))
