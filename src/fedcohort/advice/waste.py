"""How much of the work is thrown away, and why."""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import Interval, share_interval, sum_by
from fedcohort.advice.log import ARRIVED, LATE_ANSWER, FederationLog
from fedcohort.arrays import Floats


@dataclass(frozen=True)
class Waste:
    """Work that was asked for and did not count.

    Attributes:
        share: Share of the requests without an answer that counted.
        reasons: How often each reason occurred, by its word, the most frequent first.
        waiting: Share of the time of all rounds in which the server waited for clients that
            never answered in time; nan if times are unknown.
    """

    share: Interval
    reasons: dict[str, int]
    waiting: float


def measure_waste(log: FederationLog, weights: Floats, block: int) -> Waste:
    """Return how much work was thrown away.

    Args:
        log: The log.
        weights: Resamples of the rounds [B, T].
        block: Rounds per block of the resamples.
    """
    # An answer that came after its round had closed is known, but did not count.
    is_lost = ~log.arrived | (log.status == LATE_ANSWER)
    missing = sum_by(log.round, is_lost, log.num_rounds)
    share = share_interval(missing, log.asked_in_round, weights, block)
    words, counts = np.unique(log.status[is_lost], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    reasons = {str(words[place]): int(counts[place]) for place in order if words[place] != ARRIVED}
    return Waste(share, reasons, _waiting(log))


def _waiting(log: FederationLog) -> float:
    """Return the share of the time between the last answer of a round and its end.

    A round without any answer is waited for in full. Rounds are left out if nobody was asked, or
    if an answer arrived at an unknown time.
    """
    is_timed = np.isfinite(log.seconds)
    if log.arrived.any() and not is_timed.any():
        return float("nan")  # rounds without an answer alone say nothing about the others
    last = np.zeros(log.num_rounds)
    np.maximum.at(last, log.round[is_timed], log.seconds[is_timed])
    untimed = sum_by(log.round, log.arrived & ~is_timed, log.num_rounds)
    usable = np.isfinite(log.round_seconds) & (log.asked_in_round > 0) & (untimed == 0)
    total = float(log.round_seconds[usable].sum())
    if not total:
        return float("nan")
    waited = np.maximum(log.round_seconds[usable] - last[usable], 0.0)
    return float(waited.sum()) / total
