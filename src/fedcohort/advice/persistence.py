"""Whether failures last: how alike a client's answers are, by the rounds between them.

The covariance of two answers of a client, d rounds apart, is modelled as B + A r^d. B is how much
clients differ for good, A how much of a client's state lasts, and r how fast it is forgotten. The
intervals come from leaving out one tenth of the rounds after the other. They are at least as
wide as those of independent answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt

import numpy as np

from fedcohort.advice.estimates import Interval, t975
from fedcohort.advice.log import FederationLog
from fedcohort.arrays import Floats

# Fine enough that leaving out rounds moves the likeliest decay.
DECAYS = np.concatenate([np.linspace(0.1, 0.88, 40), np.linspace(0.9, 0.985, 18)])
PARTS = 10
LONGEST_GAP = 80
LEAST_ROUNDS = 20
LEAST_PAIRS = 10  # of answers of one client
LEAST_LENGTH_ERROR = 0.12  # of the logarithm of a length: decays lie on a grid, the rate is a guess


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
        length_error: Standard error of the logarithm of how long failures last.
    """

    next_round: Interval
    share: float
    decay: float
    mean_rate: float
    is_certain: bool
    length_error: float = 0.0

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

    @property
    def off_interval(self) -> Interval:
        """`off_rounds` with its interval."""
        return self._with_interval(self.off_rounds)

    @property
    def on_interval(self) -> Interval:
        """`on_rounds` with its interval."""
        return self._with_interval(self.on_rounds)

    def _with_interval(self, rounds: float) -> Interval:
        factor = exp(t975(PARTS - 1) * self.length_error)
        return Interval(rounds, rounds / factor, rounds * factor).within(1.0, inf)


NONE = Persistence(Interval(0.0, -inf, inf), 0.0, 0.5, 0.5, is_certain=False)


def estimate_persistence(log: FederationLog, *, has_trend: bool = False) -> Persistence:
    """Return how long failures last.

    Args:
        log: The log. Nothing is said of one with fewer than 20 rounds, with hardly a client that
            was asked twice, or in which every client always answers or never does.
        has_trend: Whether all clients may answer more and more often, or less and less. Such a
            trend looks like failures that last, unless it is left out.
    """
    rate = float(log.arrived.mean())
    nothing = replace(NONE, mean_rate=rate)
    answered = log.arrived_of_client
    varies = (answered > 0) & (answered < log.asked_of_client)
    # If no client ever changes, how clients differ explains everything.
    if log.num_rounds < LEAST_ROUNDS or not varies.any():
        return nothing
    level = _trend(log) if has_trend else np.full(log.num_rounds, rate)
    products, pairs = _products(log, level)
    pairs_without = pairs.sum() - pairs.sum(axis=1)
    if pairs.sum() < LEAST_PAIRS or not pairs_without.all():
        return nothing

    fit = _fit(products.sum(axis=0), pairs.sum(axis=0), rate)
    correlations = []
    log_lengths = []
    for part in range(PARTS):
        kept = np.arange(PARTS) != part
        part_fit = _fit(products[kept].sum(axis=0), pairs[kept].sum(axis=0), rate)
        correlations.append(part_fit.correlation)
        log_lengths.append(-np.log(1 - part_fit.decay))
    # The likeliest decay may be the same whatever is left out, which would look like no error.
    margin = t975(PARTS - 1) * max(_jackknife_error(correlations), fit.least_error)
    low = fit.correlation - margin
    high = fit.correlation + margin
    interval = Interval(fit.correlation, low, high).within(-1.0, 1.0)
    length_error = max(_jackknife_error(log_lengths), LEAST_LENGTH_ERROR)
    return Persistence(interval, fit.share, fit.decay, rate, interval.is_above(0.0), length_error)


def _jackknife_error(left_out: Sequence[float]) -> float:
    """Return the standard error of an estimate from its values without each tenth of the log."""
    deviations = np.array(left_out) - np.mean(left_out)
    return sqrt((PARTS - 1) / PARTS * float((deviations**2).sum()))


def _trend(log: FederationLog) -> Floats:
    """Return the straight line through the answers of all clients over the rounds [T]."""
    slope, start = np.polyfit(log.round, log.arrived.astype(np.float64), deg=1)
    return np.asarray(start + slope * np.arange(log.num_rounds))


def _products(log: FederationLog, level: Floats) -> tuple[Floats, Floats]:
    """Return sums of products of answers and their numbers, by tenth of the log and distance.

    Args:
        log: The log.
        level: What is subtracted from the answers of each round [T].
    """
    asked, arrived, _ = log.tables()
    centred = np.where(asked, arrived - level[:, None], 0.0)
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


@dataclass(frozen=True)
class _Fit:
    """The likeliest covariances.

    Attributes:
        correlation: Correlation of successive rounds, within -1 and 1.
        share: The share A of the variance within a client.
        decay: The decay r.
        least_error: Standard error of the correlation if answers were independent.
    """

    correlation: float
    share: float
    decay: float
    least_error: float


def _fit(products: Floats, pairs: Floats, rate: float) -> _Fit:
    """Return the B, A and r of least squares; for each r of `DECAYS`, B and A are a line."""
    gaps = np.flatnonzero(pairs > 0)
    total = pairs[gaps].sum()
    weights = pairs[gaps] / total
    covariance = products[gaps] / pairs[gaps]

    falling = DECAYS[:, None] ** gaps
    mean_falling = falling @ weights
    mean_covariance = covariance @ weights
    centred = falling - mean_falling[:, None]
    spread = centred**2 @ weights
    joint = (centred * (covariance - mean_covariance)) @ weights
    slope = np.divide(joint, spread, out=np.zeros(len(DECAYS)), where=spread > 0)
    between = mean_covariance - slope * mean_falling

    # Clients cannot differ by less than nothing.
    through_zero = (falling * covariance) @ weights / (falling**2 @ weights)
    slope = np.where(between < 0, through_zero, slope)
    between = np.maximum(between, 0.0)
    errors = (covariance - between[:, None] - slope[:, None] * falling) ** 2 @ weights

    best = int(errors.argmin())
    decay = float(DECAYS[best])
    within = max(rate * (1 - rate) - float(between[best]), 1e-6)
    share = float(slope[best]) / within
    return _Fit(
        correlation=float(np.clip(share * decay, -1.0, 1.0)),
        share=float(np.clip(share, 0.0, 1.0)),
        decay=decay,
        least_error=decay / sqrt(max(float(spread[best] * total), 1.0)),
    )
