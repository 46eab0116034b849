"""The deadline: what a longer or shorter one gets, and what it costs.

The recorded rounds are played again with other deadlines. A round ends with its last answer, or at
the deadline if one is missing. Answers that came too late in the log are drawn from the fitted
times. The best deadline gets the most answers per second among those that keep a given share of
the answers; a shorter one would only leave out the slow clients.
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from fedcohort.advice.durations import Durations, fit_durations
from fedcohort.advice.estimates import Interval, bootstrap_weights, from_draws, more_rounds
from fedcohort.advice.log import FederationLog
from fedcohort.arrays import Floats

POINTS = 60
DRAWS = 80
KEEP = 0.9
TOLERANCE = 0.05  # what a recommendation may lose against the best
CONFIDENCE = 0.9


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
        loss: How much the recommendation may lose against the best, at 90 % confidence.
        is_said: Whether that is at most 5 %, and the deadline not beyond what was seen.
        is_beyond: Whether the recommendation is longer than the present deadline although nobody
            knows which of the failures were only late.
        more_rounds: Rounds that would tell; None if it is said or cannot be known.
        least_kept: Share of its answers that the slowest client keeps.
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
    is_said: bool
    is_beyond: bool
    more_rounds: int | None
    least_kept: float


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

    arrivals = np.zeros((DRAWS, POINTS))
    length = np.zeros((DRAWS, POINTS))
    mean_arrivals = np.zeros(POINTS)
    mean_length = np.zeros(POINTS)
    for draw, weight in enumerate(weights):
        fitted = fit_durations(log, weight, durations) or durations
        # The curve itself is that of all rounds, averaged over what is not known of late answers.
        per_round = _play(log, _complete(log, durations, rng), grid, overhead)
        mean_arrivals += per_round[0].mean(axis=0) / DRAWS
        mean_length += per_round[1].mean(axis=0) / DRAWS
        counts, seconds = _play(log, _complete(log, fitted, rng), grid, overhead)
        arrivals[draw] = weight @ counts / log.num_rounds
        length[draw] = weight @ seconds / log.num_rounds

    kept = mean_arrivals / np.maximum(mean_arrivals[-1], 1e-12)
    speed = mean_arrivals / mean_length
    best = _best(speed, kept, keep)
    speeds = arrivals / length
    shares = arrivals / np.maximum(arrivals[:, -1:], 1e-12)
    losses = np.zeros(DRAWS)
    for draw in range(DRAWS):
        top = _best(speeds[draw], shares[draw], keep)
        is_short = max(0.0, keep - shares[draw, best])
        losses[draw] = max(1 - speeds[draw, best] / speeds[draw, top], is_short)
    loss = float(np.quantile(losses, CONFIDENCE))
    # Answers that were never seen are a guess where the log does not say who was only late.
    is_beyond = durations.by_chance and float(grid[best]) > 1.02 * durations.deadline
    is_said = loss <= TOLERANCE and not is_beyond
    return DeadlineAdvice(
        seconds=grid,
        arrivals=mean_arrivals,
        length=mean_length,
        kept=kept,
        speed=speed,
        present=log.deadline,
        best=float(grid[best]),
        gain=_gain(speeds, speed, grid, best, log.deadline),
        loss=loss,
        is_said=is_said,
        is_beyond=is_beyond,
        more_rounds=_missing_rounds(log.num_rounds, loss, is_beyond),
        least_kept=float(1 - durations.tail(float(grid[best])).max()),
    )


def _missing_rounds(rounds: int, loss: float, is_beyond: bool) -> int | None:
    if is_beyond or loss <= TOLERANCE:
        return None
    return more_rounds(rounds, loss, TOLERANCE)


def _best(speed: Floats, kept: Floats, keep: float) -> int:
    return int(np.where(kept >= keep, speed, -1.0).argmax())


def _gain(
    speeds: Floats, speed: Floats, grid: Floats, best: int, present: float | None
) -> Interval:
    """Return the speed at the recommended deadline over that at the present one."""
    if present is None:
        return Interval(nan, nan, nan)
    now = int(np.abs(grid - present).argmin())
    return from_draws(speeds[:, best] / speeds[:, now], float(speed[best] / speed[now]))


def _grid(log: FederationLog, durations: Durations, rng: np.random.Generator) -> Floats:
    """Return deadlines from the fast answers to beyond the slow ones; the present one is in."""
    clients = rng.integers(0, log.num_clients, size=20_000)
    times = durations.times(clients, rng)
    known = log.seconds[np.isfinite(log.seconds)]
    shortest = max(float(np.quantile(known, 0.02)), 1e-6)
    longest = float(known.max())
    if log.deadline is not None:
        longest = max(float(np.quantile(times, 0.995)), log.deadline)
    grid = np.geomspace(shortest, max(longest, shortest * 1.01), POINTS)
    if log.deadline is not None and shortest < log.deadline:
        grid[np.abs(grid - log.deadline).argmin()] = log.deadline
    return np.sort(grid)


def _complete(log: FederationLog, durations: Durations, rng: np.random.Generator) -> Floats:
    """Return the time of every answer [n], infinite where none would ever have come."""
    times = np.where(log.arrived, log.seconds, np.inf)
    untimed = log.arrived & np.isnan(log.seconds)
    if untimed.any():
        drawn = durations.times(log.client[untimed], rng)
        times[untimed] = np.minimum(drawn, durations.deadline)
    share = np.where(np.isnan(log.late), durations.late()[log.client], log.late)
    is_late = ~log.arrived & (rng.random(len(share)) < share)
    if np.isfinite(durations.deadline) and is_late.any():
        times[is_late] = durations.late_times(log.client[is_late], rng)
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


def _overhead(log: FederationLog) -> float:
    """Return the seconds of a round that are no waiting: sending, aggregating, testing."""
    if log.deadline is None:
        last = np.zeros(log.num_rounds)
        known = np.isfinite(log.seconds)
        np.maximum.at(last, log.round[known], log.seconds[known])
    else:
        times = np.where(log.arrived, np.nan_to_num(log.seconds), log.deadline)
        last = np.zeros(log.num_rounds)
        np.maximum.at(last, log.round, times)
        last = np.minimum(last, log.deadline)
    spare = log.round_seconds - last
    spare = spare[np.isfinite(spare)]
    return max(0.0, float(np.median(spare))) if spare.size else 0.0
