"""E3CS's update as the paper does it: lines 10 and 11 of Algorithm 1."""

from fedcohort.arrays import Floats
from fedcohort.selection.allocation import above_cap
from fedcohort.selection.protocol import Outcome


def add_gains(log_weights: Floats, outcome: Outcome, step: Floats, log_cap: Floats) -> Floats:
    """Raise the weights of clients that succeeded, unless they are capped.

    Args:
        log_weights: Logarithms of the weights of the clients asked, shape [..., k].
        outcome: How they did.
        step: eta R_t / K, shape [..., 1].
        log_cap: Logarithm of the cap, shape [...].

    Returns:
        The new log-weights of the clients asked, shape [..., k].
    """
    # Line 10: x^ = x / p, unbiased for every client if the sampler is exact.
    gain = outcome.success / outcome.cohort.inclusion
    # Line 11: w <- w exp(eta R_t x^ / K), but clients in S_t keep their weight.
    gain[above_cap(log_weights, log_cap)] = 0.0
    return log_weights + step * gain
