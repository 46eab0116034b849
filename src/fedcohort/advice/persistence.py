"""Whether failures last: how alike a client's answers are, by the rounds between them.

The correlation of two answers of a client, d rounds apart, is modelled as B + A r^d. A is how much
of a client's state lasts, and r how fast it is forgotten. Answers count beside their client's own
rate: a selector that asks again whom it missed has other clients in its short distances than in its
long ones, and would make clients that differ look like failures that last. Own rates are estimated,
so that answers seem less alike than they are; B takes that up. The intervals come from leaving out
one tenth of the rounds after the other. They are at least as wide as those of independent answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt

import numpy as np

from fedcohort.advice.estimates import Interval, t975
from fedcohort.advice.log import FederationLog
from fedcohort.advice.own_rates import OwnRates, group_rounds, shrink_rates, split_tables
from fedcohort.arrays import Bools, Floats

# Fine enough that leaving out rounds moves the likeliest decay.
DECAYS = np.concatenate([np.linspace(0.1, 0.88, 40), np.linspace(0.9, 0.985, 18)])
PARTS = 10
LONGEST_GAP = 80
LEAST_ROUNDS = 20
LEAST_PAIRS = 10  # of answers of one client
LEAST_LENGTH_ERROR = 0.12  # of the logarithm of a length: decays lie on a grid, rates are a guess


@dataclass(frozen=True)
class Persistence:
    """How a client's answers depend on its earlier ones.

    Attributes:
        next_round: Correlation of a client's answers in two successive rounds, beyond how
            clients differ for good.
        share: Share of a client's state that lasts, A.
        decay: How much of it is left after a round, r.
        mean_rate: How often clients answer, the mean over clients.
        within: Variance of a client's answers, the mean over clients.
        is_certain: Whether failures last for certain.
        length_error: Standard error of the logarithm of how long failures last.
    """

    next_round: Interval
    share: float
    decay: float
    mean_rate: float
    within: float
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
        return self.off_interval.value

    @property
    def on_rounds(self) -> float:
        """Mean rounds for which a client that answers goes on answering, at least 1."""
        return self.on_interval.value

    @property
    def off_interval(self) -> Interval:
        """`off_rounds` with its interval."""
        return self._rounds_in_state(1 - self.mean_rate)

    @property
    def on_interval(self) -> Interval:
        """`on_rounds` with its interval."""
        return self._rounds_in_state(self.mean_rate)

    def _rounds_in_state(self, share: float) -> Interval:
        """Return the share of the rounds in a state over how often a client gets into it."""
        if not self.is_certain:
            return Interval(1.0, 1.0, 1.0)
        # A client with rate m begins (1 - r) m (1 - m) failures per round.
        rounds = share / ((1 - self.decay) * self.within)
        # If some clients forget faster than others, the correlation of successive rounds counts
        # instead of r, and is smaller.
        least = share / (max(1 - self.next_round.value, 1 - self.decay) * self.within)
        factor = exp(t975(PARTS - 1) * self.length_error)
        return Interval(rounds, least / factor, rounds * factor).within(1.0, inf)


NONE = Persistence(Interval(0.0, -inf, inf), 0.0, 0.5, 0.5, 0.25, is_certain=False)


def estimate_persistence(
    log: FederationLog, *, has_trend: bool = False, position: int = 0
) -> Persistence:
    """Return how long failures last.

    Args:
        log: The log. Nothing is said of one with fewer than 20 rounds, with hardly a client that
            was asked twice, in which every client always answers or never does, or whose rounds
            have too many deadlines.
        has_trend: Whether all clients may answer more and more often, or less and less. Such a
            trend looks like failures that last, unless it is left out.
        position: Round before which every client had a rate of its own; 0 if it had not.
    """
    nothing = replace(NONE, mean_rate=float(log.arrived.mean()))
    group = group_rounds(log)
    if log.num_rounds < LEAST_ROUNDS or group is None:
        return nothing
    if position:
        group = 2 * group + (np.arange(log.num_rounds) >= position)
    asked, arrived = split_tables(log, group)
    number = asked.sum(axis=0).astype(np.float64)
    answered = arrived.sum(axis=0).astype(np.float64)
    # If no client ever changes, how clients differ explains everything.
    if not ((answered > 0) & (answered < number)).any():
        return nothing
    own = shrink_rates(number, answered)
    centred = np.where(asked, arrived - own.mean, 0.0)
    if has_trend:
        centred -= _trend(asked, centred)
    sums = _pair_sums(asked, centred, own)
    pairs = sums[-1]
    pairs_without = pairs.sum() - pairs.sum(axis=1)
    if pairs.sum() < LEAST_PAIRS or not pairs_without.all():
        return nothing

    fit = _fit(*sums.sum(axis=1))
    correlations = []
    log_lengths = []
    for part in range(PARTS):
        kept = np.arange(PARTS) != part
        part_fit = _fit(*sums[:, kept].sum(axis=1))
        correlations.append(part_fit.correlation)
        log_lengths.append(-np.log((1 - part_fit.decay) * part_fit.within))
    # The likeliest decay may be the same whatever is left out, which would look like no error.
    margin = t975(PARTS - 1) * max(_jackknife_error(correlations), fit.least_error)
    low = fit.correlation - margin
    high = fit.correlation + margin
    interval = Interval(fit.correlation, low, high).within(-1.0, 1.0)
    return Persistence(
        next_round=interval,
        share=fit.share,
        decay=fit.decay,
        mean_rate=float(own.mean.mean()),
        within=fit.within * float(own.variance.mean()),
        is_certain=interval.is_above(0.0),
        length_error=max(_jackknife_error(log_lengths), LEAST_LENGTH_ERROR),
    )


def _jackknife_error(left_out: Sequence[float]) -> float:
    """Return the standard error of an estimate from its values without each tenth of the log."""
    deviations = np.array(left_out) - np.mean(left_out)
    return sqrt((PARTS - 1) / PARTS * float((deviations**2).sum()))


def _trend(asked: Bools, centred: Floats) -> Floats:
    """Return by how much answers rise or fall with the rounds, as fast for all clients [T, C]."""
    rounds = np.arange(len(asked), dtype=np.float64)
    # Beside the mean round of each client: its own rate has taken up the rest.
    times = np.where(asked, rounds[:, None] - rounds @ asked / asked.sum(axis=0), 0.0)
    slope = (times * centred).sum() / max((times**2).sum(), 1.0)
    return np.asarray(slope * times)


def _pair_sums(asked: Bools, centred: Floats, own: OwnRates) -> Floats:
    """Return sums over pairs of a client's answers, by tenth and distance [3, P, D].

    They are the products of the answers, the squares of the earlier one, and the number of pairs.

    Args:
        asked: Who was asked [T, C].
        centred: Answers beside their clients' rates, 0 where nobody was asked [T, C].
        own: How often each client answers [C].
    """
    rounds = len(asked)
    longest = min(LONGEST_GAP, rounds // 2)
    part = np.arange(rounds) * PARTS // rounds
    sums = np.zeros((3, PARTS, longest + 1))
    for gap in range(1, longest + 1):
        both = asked[:-gap] & asked[gap:]
        # Independent answers beside a mean that holds them have a product below 0.
        products = (centred[:-gap] * centred[gap:]).sum(axis=1) + both @ own.error
        # Whom a selector asks again may depend on the earlier answer, so that one counts.
        squares = (centred[:-gap] ** 2 * both).sum(axis=1) + both @ own.error
        for place, values in enumerate((products, squares, both.sum(axis=1))):
            sums[place, :, gap] = np.bincount(part[:-gap], weights=values, minlength=PARTS)
    return sums


@dataclass(frozen=True)
class _Fit:
    """The likeliest correlations.

    Attributes:
        correlation: Correlation of successive rounds, within -1 and 1.
        share: The share A of the variance within a client.
        decay: The decay r.
        within: Variance within a client over what was taken for it, 1 - B.
        least_error: Standard error of the correlation if answers were independent.
    """

    correlation: float
    share: float
    decay: float
    within: float
    least_error: float


def _fit(products: Floats, squares: Floats, pairs: Floats) -> _Fit:
    """Return the B, A and r of least squares; for each r of `DECAYS`, B and A are a line."""
    gaps = np.flatnonzero(squares > 0)
    total = pairs[gaps].sum()
    weights = pairs[gaps] / total
    correlation = products[gaps] / squares[gaps]

    falling = DECAYS[:, None] ** gaps
    mean_falling = falling @ weights
    mean_correlation = correlation @ weights
    centred = falling - mean_falling[:, None]
    spread = centred**2 @ weights
    joint = (centred * (correlation - mean_correlation)) @ weights
    slope = np.divide(joint, spread, out=np.zeros(len(DECAYS)), where=spread > 0)
    level = mean_correlation - slope * mean_falling
    errors = (correlation - level[:, None] - slope[:, None] * falling) ** 2 @ weights

    best = int(errors.argmin())
    decay = float(DECAYS[best])
    within = max(1 - float(level[best]), 1e-6)
    share = float(slope[best]) / within
    return _Fit(
        correlation=float(np.clip(share * decay, -1.0, 1.0)),
        share=float(np.clip(share, 0.0, 1.0)),
        decay=decay,
        within=within,
        least_error=decay / sqrt(max(float(spread[best] * total), 1.0)),
    )
