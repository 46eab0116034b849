"""How long answers take, also those that come too late to be seen.

The logarithm of client i's time is normal with mean m_i and a spread that all clients share; m_i is
shrunk towards the others. A client answers at all with probability q_i. Answers after the deadline
are not seen: expectation and maximisation alternate over how many there were.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.estimates import sum_by
from fedcohort.advice.log import FederationLog
from fedcohort.advice.special_functions import normal_quantile, normal_tail
from fedcohort.arrays import Bools, Floats, Ints

LEAST_ANSWERS = 20  # with times; fewer say nothing
STEPS = 800
CLOSE = 1e-5  # a step that moves no parameter by more is the last
PRIOR = 1.0  # a client counts as one typical answer more
TINY = 1e-9
FAR = 5.0  # deviations beyond which the tail of the normal distribution is approximated


@dataclass(frozen=True, eq=False)
class Durations:
    """How long answers take.

    Attributes:
        log_median: Logarithm of each client's median seconds [K].
        spread: Standard deviation of the logarithm of a client's seconds.
        answers: How often each client answers at all, however late [K].
        by_chance: Whether it was unknown which failures were late.
    """

    log_median: Floats
    spread: float
    answers: Floats
    by_chance: bool

    def late(self, client: Ints, seconds: Floats) -> Floats:
        """Return the probability that failures were only too late [n].

        Args:
            client: The clients that failed [n].
            seconds: The deadlines that they missed [n].
        """
        answers = self.answers[client]
        missed = answers * self._tail(client, seconds)
        return np.asarray(missed / np.maximum(1 - answers + missed, TINY))

    def tail(self, seconds: float) -> Floats:
        """Return the probability that an answer of each client takes longer [K]."""
        clients = np.arange(len(self.log_median))
        return self._tail(clients, np.full(len(clients), seconds))

    def late_times(self, client: Ints, seconds: Floats, rng: np.random.Generator) -> Floats:
        """Return times of answers beyond a deadline [n].

        Args:
            client: The clients that answer [n].
            seconds: The deadlines that they missed [n].
            rng: Source of randomness.
        """
        bound = (np.log(seconds) - self.log_median[client]) / self.spread
        shares = rng.random(len(client))
        scores = -normal_quantile(shares * normal_tail(bound))
        # Far out the tail falls like exp(-x^2 / 2), of which the inverse is known.
        far = np.sqrt(np.maximum(bound, FAR) ** 2 - 2 * np.log(np.maximum(shares, TINY)))
        scores = np.where(bound > FAR, far, scores)
        times = np.exp(self.log_median[client] + self.spread * scores)
        return np.asarray(np.maximum(times, np.nextafter(seconds, np.inf)))

    def times(self, client: Ints, rng: np.random.Generator) -> Floats:
        """Return times of any answers, one for each client that is named."""
        scores = rng.standard_normal(client.shape)
        return np.asarray(np.exp(self.log_median[client] + self.spread * scores))

    def _tail(self, client: Ints, seconds: Floats) -> Floats:
        return normal_tail((np.log(seconds) - self.log_median[client]) / self.spread)


@dataclass(frozen=True, eq=False)
class Counts:
    """What the fit needs of a log.

    Attributes:
        answers: Answers with a time of each client [K].
        sums: Sums of the logarithms of these times [K].
        squares: Sums of their squares [K].
        never: Failures of clients that would never have answered [K].
        client: Client of each group of failures, which have one deadline [P].
        deadline: The seconds after which the clients of each group stopped [P].
        late: Failures that were late for certain [P].
        unsure: Failures that may have been late [P].
    """

    answers: Floats
    sums: Floats
    squares: Floats
    never: Floats
    client: Ints
    deadline: Floats
    late: Floats
    unsure: Floats


def count_times(log: FederationLog) -> Counts:
    """Return the counts of a log."""

    def total(values: Floats) -> Floats:
        return sum_by(log.client, values, log.num_clients)

    is_timed = np.isfinite(log.seconds)
    logs = np.log(np.maximum(np.where(is_timed, log.seconds, 1.0), TINY))
    failed = ~log.arrived
    # Failures of a client that missed the same deadline are alike.
    deadlines, level = np.unique(log.limit_in_round, return_inverse=True)
    group = log.client * len(deadlines) + level[log.round]
    used = np.flatnonzero(np.bincount(group[failed], minlength=1))
    place = np.searchsorted(used, group[failed])

    def in_groups(values: Bools) -> Floats:
        return sum_by(place, values[failed], len(used))

    return Counts(
        answers=total(is_timed),
        sums=total(is_timed * logs),
        squares=total(is_timed * logs**2),
        never=total(failed & (log.late == 0)),
        client=used // len(deadlines),
        deadline=deadlines[used % len(deadlines)],
        late=in_groups(log.late == 1),
        unsure=in_groups(np.isnan(log.late)),
    )


def fit_durations(log: FederationLog) -> Durations | None:
    """Return how long answers take; None if too few have a time."""
    counts = count_times(log)
    total = counts.answers.sum()
    if total < LEAST_ANSWERS:
        return None
    mean = counts.sums.sum() / total
    spread = float(np.sqrt(max(counts.squares.sum() / total - mean**2, 1e-4)))
    centre = (counts.sums + mean) / (counts.answers + 1)
    between = spread**2
    answers = np.full(log.num_clients, 0.5)
    open_failures = sum_by(counts.client, counts.late + counts.unsure, log.num_clients)
    all_failures = counts.never + open_failures
    for _ in range(STEPS):
        before = (mean, spread, float(answers.mean()))
        late, late_sums, late_squares = _expected_late(counts, centre, spread, answers)
        known = counts.answers + late
        sums = counts.sums + late_sums
        squares = counts.squares + late_squares
        # Clients as random effects: their means are known up to the variance `unsure`.
        strength = spread**2 / max(between, 1e-6)
        centre = (sums + strength * mean) / (known + strength)
        unsure = spread**2 / (known + strength)
        mean = float(centre.mean())
        between = float(((centre - mean) ** 2 + unsure).mean())
        within = squares - 2 * centre * sums + known * (centre**2 + unsure)
        within = within.sum() / known.sum()
        spread = float(np.sqrt(max(within, 1e-6)))
        failures = all_failures - late
        share = float(known.sum() / (known.sum() + failures.sum()))
        answers = (known + PRIOR * share) / (known + failures + PRIOR)
        after = (mean, spread, float(answers.mean()))
        if max(abs(new - old) for new, old in zip(after, before, strict=True)) < CLOSE:
            break
    by_chance = bool((counts.unsure * np.isfinite(counts.deadline)).sum() > 0)
    return Durations(centre, spread, answers, by_chance)


def _expected_late(
    counts: Counts, centre: Floats, spread: float, answers: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return how many answers were late, and their logarithms' sums and squares, all [K]."""
    clients = len(centre)
    own = centre[counts.client]
    bound = (np.log(counts.deadline) - own) / spread
    tail = normal_tail(bound)
    missed = answers[counts.client] * tail
    share = missed / np.maximum(1 - answers[counts.client] + missed, TINY)
    late = counts.late + counts.unsure * share
    # Moments of a normal number above the bound.
    near = np.clip(bound, -30, 30)
    hazard = _hazard(near, tail)
    first = own + spread * hazard
    variance = spread**2 * np.clip(1 + near * hazard - hazard**2, 0.0, 1.0)
    return (
        sum_by(counts.client, late, clients),
        sum_by(counts.client, late * first, clients),
        sum_by(counts.client, late * (variance + first**2), clients),
    )


def _hazard(bound: Floats, tail: Floats) -> Floats:
    """Return density over tail of the normal distribution; far out by its expansion."""
    density = np.exp(-(bound**2) / 2) / np.sqrt(2 * np.pi)
    far = np.maximum(bound, 1.0)
    expanded = far + 1 / far - 2 / far**3
    return np.asarray(np.where(tail > TINY, density / np.maximum(tail, TINY), expanded))
