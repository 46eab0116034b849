"""The deadline: what a longer or shorter one gets, and what it costs.

The recorded rounds are played again with other deadlines. A round ends with its last answer, or at
the deadline if one is missing. Answers that came too late in the log are drawn from what may be
true of them. The best deadline gets the most answers per second among those that keep a given share
of the answers; a shorter one would only leave out the slow clients.

How sure that is comes from worlds of two kinds: resamples of the recorded rounds, and rounds whose
times are all drawn from the fitted model. Every world has a best deadline of its own. The
recommended one loses least against these on average.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.durations import Durations, fit_durations
from fedcohort.advice.estimates import (
    UNKNOWN,
    Interval,
    bootstrap_weights,
    from_draws,
    more_rounds,
    sum_by,
)
from fedcohort.advice.log import FederationLog
from fedcohort.advice.unseen import draw_durations
from fedcohort.arrays import Floats

POINTS = 60
DRAWS = 120
KEEP = 0.9
TOLERANCE = 0.05  # what a recommendation may lose against the best
FITTED_QUESTIONS = 5000  # to be played at least in a world of the model
MOST_REPEATS = 10
TINY = 1e-9
RISK = 0.03  # the largest chance of losing more with which something is said


@dataclass(frozen=True, eq=False)
class DeadlineAdvice:
    """Deadlines and what they get, for the recorded cohorts.

    Attributes:
        seconds: The deadlines [G].
        arrivals: Expected answers per round [G].
        length: Expected seconds of a round [G].
        kept: Share of all answers, however late, that arrive [G].
        speed: Answers per second [G].
        present: The deadline in the log; None if it is unknown.
        best: The recommended deadline; nan if nothing can be said.
        gain: Answers per second at the recommended deadline over those at the present one.
        loss: How much the recommendation may lose against the best, at 97 % confidence.
        risk: Chance that it loses more than 5 %, in the kind of world where that is larger.
        is_said: Whether that is at most 3 %, and the deadline not beyond what was seen.
        is_beyond: Whether the recommendation is longer than the present deadline although nobody
            knows which of the failures were only late.
        more_rounds: Rounds that would tell; None if it is said or cannot be known.
        least_kept: Share of its answers that the slowest client keeps.
        keep: Share of the answers that the deadline must keep.
    """

    seconds: Floats
    arrivals: Floats
    length: Floats
    kept: Floats
    speed: Floats
    present: float | None
    best: float
    gain: Interval
    loss: float
    risk: float
    is_said: bool
    is_beyond: bool
    more_rounds: int | None
    least_kept: float
    keep: float

    @property
    def is_better(self) -> bool:
        """Whether the recommended deadline gets more answers per second for certain.

        That it is the best of all is another question: see `is_said`.
        """
        return self.gain.is_above(1.0) and self.gain.value >= 1.01 and not self.is_beyond

    @property
    def is_to_set(self) -> bool:
        """Whether the recommended deadline is to replace the present one."""
        return self.is_said and (self.is_better or self.present is None)

    def nearest(self, seconds: float) -> int:
        """Return the position of the deadline on the curve that is nearest to a number."""
        return int(np.abs(self.seconds - seconds).argmin())

    @property
    def shortest_allowed(self) -> float:
        """The shortest deadline that keeps the given share of the answers."""
        return float(np.interp(self.keep, self.kept, self.seconds))


def advise_deadline(
    log: FederationLog, block: int, rng: np.random.Generator, keep: float = KEEP
) -> DeadlineAdvice | None:
    """Return what other deadlines would get; None if the log has too few answer times.

    Args:
        log: The log.
        block: Rounds per block of the resamples.
        rng: Source of randomness.
        keep: Share of the answers that the deadline must keep.
    """
    durations = fit_durations(log)
    if durations is None:
        return None
    grid = _grid(log, durations, rng)
    overhead = _overhead(log)
    weights = bootstrap_weights(log.num_rounds, DRAWS, block, rng)
    drawn = draw_durations(log, durations, rng, DRAWS)

    has_deadlines = bool(np.isfinite(log.deadline_in_round).all())
    arrivals = np.zeros((2, DRAWS, POINTS))
    length = np.zeros((2, DRAWS, POINTS))
    speed_now = np.full(DRAWS, np.nan)
    mean_arrivals = np.zeros(POINTS)
    mean_length = np.zeros(POINTS)
    for draw, weight in enumerate(weights):
        times = _complete(log, drawn[draw], rng)
        counts, seconds = _play(log, times, grid, overhead)
        mean_arrivals += counts.mean(axis=0) / DRAWS
        mean_length += seconds.mean(axis=0) / DRAWS
        arrivals[0, draw] = weight @ counts / log.num_rounds
        length[0, draw] = weight @ seconds / log.num_rounds
        if has_deadlines:
            counts, seconds = _play_now(log, times, overhead)
            speed_now[draw] = max(weight @ counts, TINY) / max(weight @ seconds, TINY)
        arrivals[1, draw], length[1, draw] = _play_fitted(
            log, drawn[draw], times, grid, overhead, rng
        )

    speeds = arrivals / np.maximum(length, TINY)
    shares = arrivals / np.maximum(arrivals[..., -1:], 1e-12)
    losses = _losses(speeds, shares, keep)
    best = int(losses.mean(axis=(0, 1)).argmin())
    loss = float(np.quantile(losses[..., best], 1 - RISK, axis=1).max())
    risk = float((losses[..., best] > TOLERANCE).mean(axis=1).max())
    # Answers that were never seen are a guess where the log does not say who was only late.
    longest = log.longest_deadline or np.inf
    is_beyond = durations.by_chance and float(grid[best]) > 1.02 * longest
    is_said = risk <= RISK and not is_beyond
    return DeadlineAdvice(
        seconds=grid,
        arrivals=mean_arrivals,
        length=mean_length,
        kept=mean_arrivals / np.maximum(mean_arrivals[-1], 1e-12),
        speed=mean_arrivals / np.maximum(mean_length, TINY),
        present=log.deadline,
        best=float(grid[best]),
        gain=from_draws(speeds[0, :, best] / speed_now) if has_deadlines else UNKNOWN,
        loss=loss,
        risk=risk,
        is_said=is_said,
        is_beyond=is_beyond,
        more_rounds=None if is_said or is_beyond else more_rounds(log.num_rounds, loss, TOLERANCE),
        least_kept=_least_kept(drawn, float(grid[best])),
        keep=keep,
    )


def _losses(speeds: Floats, shares: Floats, keep: float) -> Floats:
    """Return what each deadline loses against the best of each world, [..., G].

    That is the share of the speed, or of the answers that it should keep if that is more.

    Args:
        speeds: Answers per second [..., G].
        shares: Share of all answers that arrive [..., G].
        keep: Share that should.
    """
    allowed = np.where(shares >= keep, speeds, 0.0).max(axis=-1, keepdims=True)
    slower = 1 - speeds / np.maximum(allowed, 1e-12)
    return np.asarray(np.maximum(np.maximum(slower, keep - shares), 0.0))


def _least_kept(drawn: list[Durations], seconds: float) -> float:
    """Return the share of its answers that the slowest client keeps at a deadline."""
    tails = np.mean([durations.tail(seconds) for durations in drawn], axis=0)
    return float(1 - tails.max())


def _grid(log: FederationLog, durations: Durations, rng: np.random.Generator) -> Floats:
    """Return deadlines from the fast answers to beyond the slow ones; the present one is in."""
    clients = rng.integers(0, log.num_clients, size=20_000)
    times = durations.times(clients, rng)
    known = log.seconds[np.isfinite(log.seconds)]
    shortest = max(float(np.quantile(known, 0.02)), 1e-6)
    longest = float(known.max())
    if log.longest_deadline is not None:
        longest = max(float(np.quantile(times, 0.995)), log.longest_deadline)
    grid = np.geomspace(shortest, max(longest, shortest * 1.01), POINTS)
    if log.deadline is not None and shortest < log.deadline:
        grid[np.abs(grid - log.deadline).argmin()] = log.deadline
    return np.sort(grid)


def _complete(log: FederationLog, durations: Durations, rng: np.random.Generator) -> Floats:
    """Return the time of every answer [n], infinite where none would ever have come."""
    limits = log.deadline_in_round[log.round]
    times = np.where(log.arrived, log.seconds, np.inf)
    untimed = log.arrived & np.isnan(log.seconds)
    if untimed.any():
        drawn = durations.times(log.client[untimed], rng)
        times[untimed] = np.minimum(drawn, limits[untimed])
    share = np.where(np.isnan(log.late), durations.late(log.client, limits), log.late)
    is_late = ~log.arrived & np.isfinite(limits) & (rng.random(len(share)) < share)
    if is_late.any():
        times[is_late] = durations.late_times(log.client[is_late], limits[is_late], rng)
    return times


def _play(
    log: FederationLog, times: Floats, grid: Floats, overhead: float
) -> tuple[Floats, Floats]:
    """Return answers and seconds of each round at each deadline, [T, G] each."""
    place = np.searchsorted(grid, times)
    counts = np.zeros((log.num_rounds, POINTS + 1))
    np.add.at(counts, (log.round, place), 1.0)
    last = np.zeros(log.num_rounds)
    np.maximum.at(last, log.round, times)
    return counts.cumsum(axis=1)[:, :POINTS], np.minimum(last[:, None], grid) + overhead


def _play_fitted(
    log: FederationLog,
    durations: Durations,
    times: Floats,
    grid: Floats,
    overhead: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return mean answers and seconds at each deadline, [G] each, with times of the model.

    Those who answer at all are those of `times`. Short logs are played several times, because the
    chance of few rounds is not the doubt about the model.
    """
    repeats = int(np.clip(FITTED_QUESTIONS // len(times), 1, MOST_REPEATS))
    arrivals = np.zeros(POINTS)
    length = np.zeros(POINTS)
    for _ in range(repeats):
        fresh = np.where(np.isfinite(times), durations.times(log.client, rng), np.inf)
        counts, seconds = _play(log, fresh, grid, overhead)
        arrivals += counts.mean(axis=0) / repeats
        length += seconds.mean(axis=0) / repeats
    return arrivals, length


def _play_now(log: FederationLog, times: Floats, overhead: float) -> tuple[Floats, Floats]:
    """Return answers and seconds of each round at its own deadline, [T] each."""
    limits = log.deadline_in_round
    is_in_time = times <= limits[log.round]
    last = np.zeros(log.num_rounds)
    np.maximum.at(last, log.round, times)
    return sum_by(log.round, is_in_time, log.num_rounds), np.minimum(last, limits) + overhead


def _overhead(log: FederationLog) -> float:
    """Return the seconds of a round that are no waiting: sending, aggregating, testing."""
    limits = log.deadline_in_round
    answered = np.where(log.arrived, log.seconds, limits[log.round])
    last = np.zeros(log.num_rounds)
    known = np.isfinite(answered)
    np.maximum.at(last, log.round[known], answered[known])
    spare = log.round_seconds - np.minimum(last, limits)
    untimed = log.arrived & np.isnan(log.seconds)
    spare[log.round[untimed]] = np.nan  # the last answer may be one without a time
    spare = spare[np.isfinite(spare)]
    return max(0.0, float(np.median(spare))) if spare.size else 0.0
