"""How long answers take, also those that come too late to be seen.

The logarithm of client i's time is normal with mean m_i and a spread that all clients share; m_i is
shrunk towards the others. A client answers at all with probability q_i. Answers after the deadline
are not seen: expectation and maximisation alternate over how many there were.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import normal_quantile, normal_tail, sum_by
from fedcohort.advice.log import FederationLog
from fedcohort.arrays import Floats, Ints

LEAST_ANSWERS = 20  # with times; fewer say nothing
STEPS = 800
LATER_STEPS = 100  # from a fit of nearly the same answers
CLOSE = 1e-5  # a step that moves no parameter by more is the last
PRIOR = 1.0  # a client counts as one typical answer more
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Durations:
    """How long answers take.

    Attributes:
        log_median: Logarithm of each client's median seconds [K].
        spread: Standard deviation of the logarithm of a client's seconds.
        answers: How often each client answers at all, however late [K].
        deadline: The deadline in the log; infinite if there is none.
        by_chance: Whether it was unknown which failures were late.
    """

    log_median: Floats
    spread: float
    answers: Floats
    deadline: float
    by_chance: bool

    def late(self) -> Floats:
        """Return the probability that each client is too late if it fails [K]."""
        tail = self.tail(self.deadline)
        missed = self.answers * tail
        return np.asarray(missed / np.maximum(1 - self.answers + missed, TINY))

    def tail(self, seconds: float) -> Floats:
        """Return the probability that an answer of each client takes longer [K]."""
        if not np.isfinite(seconds):
            return np.zeros(len(self.log_median))
        return normal_tail((np.log(seconds) - self.log_median) / self.spread)

    def late_times(self, client: Ints, rng: np.random.Generator) -> Floats:
        """Return times of answers beyond the deadline, one for each client that is named."""
        bound = self.tail(self.deadline)[client]
        scores = -normal_quantile(rng.random(len(client)) * bound)
        times = np.exp(self.log_median[client] + self.spread * scores)
        return np.asarray(np.maximum(times, self.deadline))

    def times(self, client: Ints, rng: np.random.Generator) -> Floats:
        """Return times of any answers, one for each client that is named."""
        scores = rng.standard_normal(client.shape)
        return np.asarray(np.exp(self.log_median[client] + self.spread * scores))


@dataclass(frozen=True, eq=False)
class Counts:
    """What the fit needs of a log, all [K]: answers with a time, sums of logs, failures."""

    answers: Floats
    sums: Floats
    squares: Floats
    late: Floats
    never: Floats
    unsure: Floats


def count_times(log: FederationLog, weights: Floats | None = None) -> Counts:
    """Return the counts of a log.

    Args:
        log: The log.
        weights: How often each round counts [T]; by default once.
    """
    weight = np.ones(len(log.round)) if weights is None else weights[log.round]

    def total(values: Floats) -> Floats:
        return sum_by(log.client, values, log.num_clients)

    is_timed = np.isfinite(log.seconds)
    logs = np.log(np.maximum(np.where(is_timed, log.seconds, 1.0), TINY))
    failed = ~log.arrived
    return Counts(
        answers=total(weight * is_timed),
        sums=total(weight * is_timed * logs),
        squares=total(weight * is_timed * logs**2),
        late=total(weight * (failed & (log.late == 1))),
        never=total(weight * (failed & (log.late == 0))),
        unsure=total(weight * (failed & np.isnan(log.late))),
    )


def fit_durations(
    log: FederationLog, weights: Floats | None = None, start: Durations | None = None
) -> Durations | None:
    """Return how long answers take; None if too few have a time.

    Args:
        log: The log.
        weights: How often each round counts [T]; by default once.
        start: A fit to begin with, which saves steps.
    """
    counts = count_times(log, weights)
    total = counts.answers.sum()
    if total < LEAST_ANSWERS:
        return None
    deadline = np.inf if log.deadline is None else log.deadline
    mean = counts.sums.sum() / total
    spread = float(np.sqrt(max(counts.squares.sum() / total - mean**2, 1e-4)))
    centre = (counts.sums + mean) / (counts.answers + 1)
    between = spread**2
    answers = np.full(log.num_clients, 0.5)
    if start is not None:
        mean = float(start.log_median.mean())
        spread = start.spread
        centre = start.log_median
        between = float(centre.var()) + 1e-4
        answers = start.answers
    for _ in range(STEPS if start is None else LATER_STEPS):
        before = (mean, spread, float(answers.mean()))
        late, first, second = _expected_late(counts, centre, spread, answers, deadline)
        known = counts.answers + late
        sums = counts.sums + late * first
        squares = counts.squares + late * second
        # Clients as random effects: their means are known up to the variance `unsure`.
        strength = spread**2 / max(between, 1e-6)
        centre = (sums + strength * mean) / (known + strength)
        unsure = spread**2 / (known + strength)
        mean = float(centre.mean())
        between = float(((centre - mean) ** 2 + unsure).mean())
        within = squares - 2 * centre * sums + known * (centre**2 + unsure)
        within = within.sum() / known.sum()
        spread = float(np.sqrt(max(within, 1e-6)))
        failures = counts.never + counts.unsure + counts.late - late
        share = float(known.sum() / (known.sum() + failures.sum()))
        answers = (known + PRIOR * share) / (known + failures + PRIOR)
        after = (mean, spread, float(answers.mean()))
        if max(abs(new - old) for new, old in zip(after, before, strict=True)) < CLOSE:
            break
    by_chance = bool(counts.unsure.sum() > 0 and np.isfinite(deadline))
    return Durations(centre, spread, answers, float(deadline), by_chance)


def _expected_late(
    counts: Counts, centre: Floats, spread: float, answers: Floats, deadline: float
) -> tuple[Floats, Floats, Floats]:
    """Return how many answers were late, and the mean and mean square of their logarithms."""
    nothing = np.zeros(len(centre))
    if not np.isfinite(deadline):
        return nothing, nothing, nothing
    bound = (np.log(deadline) - centre) / spread
    tail = np.maximum(normal_tail(bound), TINY)
    missed = answers * tail
    share = missed / np.maximum(1 - answers + missed, TINY)
    late = counts.late + counts.unsure * share
    # Moments of a normal number above the bound.
    hazard = np.exp(-(np.clip(bound, -30, 30) ** 2) / 2) / np.sqrt(2 * np.pi) / tail
    first = centre + spread * hazard
    variance = spread**2 * np.clip(1 + bound * hazard - hazard**2, 0.0, 1.0)
    return late, first, variance + first**2
