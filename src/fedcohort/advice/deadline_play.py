"""Recorded rounds played again with other deadlines.

A round ends with its last answer, or at the deadline if one never comes. Clients that stop shortly
before the deadline say so then.
"""

import numpy as np

from fedcohort.advice.durations import Durations
from fedcohort.advice.estimates import sum_by
from fedcohort.advice.log import FederationLog
from fedcohort.arrays import Bools, Floats
from fedcohort.early_stop import deadline_for, stop_margin

POINTS = 60
FITTED_QUESTIONS = 5000  # to be played at least in a world of the model
MOST_REPEATS = 10


def deadline_grid(log: FederationLog, durations: Durations, rng: np.random.Generator) -> Floats:
    """Return deadlines from the fast answers to beyond the slow ones; the present one is in."""
    clients = rng.integers(0, log.num_clients, size=20_000)
    times = durations.times(clients, rng)
    known = log.seconds[np.isfinite(log.seconds)]
    shortest = max(float(np.quantile(known, 0.02)), 1e-6)
    longest = deadline_for(float(known.max()), log.grace)
    if log.longest_deadline is not None:
        slow = deadline_for(float(np.quantile(times, 0.995)), log.grace)
        longest = max(slow, log.longest_deadline)
    grid = np.geomspace(shortest, max(longest, shortest * 1.01), POINTS)
    if log.deadline is not None and shortest < log.deadline:
        grid[np.abs(grid - log.deadline).argmin()] = log.deadline
    return np.sort(grid)


def complete_times(log: FederationLog, durations: Durations, rng: np.random.Generator) -> Floats:
    """Return the time of every answer [n], infinite where none would ever have come."""
    limits = log.limit_in_round[log.round]
    # What arrived was in time, even if a clock says that it took a little longer.
    times = np.where(log.arrived, np.minimum(log.seconds, limits), np.inf)
    untimed = log.arrived & np.isnan(log.seconds)
    if untimed.any():
        drawn = durations.times(log.client[untimed], rng)
        times[untimed] = np.minimum(drawn, limits[untimed])
    share = np.where(np.isnan(log.late), durations.late(log.client, limits), log.late)
    is_late = ~log.arrived & np.isfinite(limits) & (rng.random(len(share)) < share)
    if is_late.any():
        times[is_late] = durations.late_times(log.client[is_late], limits[is_late], rng)
    return times


def play_deadlines(
    log: FederationLog, times: Floats, grid: Floats, overhead: float
) -> tuple[Floats, Floats]:
    """Return answers and seconds of each round at each deadline, [T, G] each."""
    stops = stops_at(log, grid)
    place = np.searchsorted(stops, times)
    counts = np.zeros((log.num_rounds, POINTS + 1))
    np.add.at(counts, (log.round, place), 1.0)
    last, is_open = _last_answers(log, times)
    seconds = np.where(is_open[:, None], grid, np.minimum(last[:, None], stops))
    return counts.cumsum(axis=1)[:, :POINTS], seconds + overhead


def stops_at(log: FederationLog, grid: Floats) -> Floats:
    """Return after how many seconds clients stop at each deadline [G]."""
    return grid - stop_margin(grid, log.grace)


def _last_answers(log: FederationLog, times: Floats) -> tuple[Floats, Bools]:
    """Return the time of each round's last answer [T], and whether one never comes [T].

    The server waits for a client that never answers until the deadline. A late one says before
    that it stopped.
    """
    is_never = np.isinf(times)
    last = np.zeros(log.num_rounds)
    np.maximum.at(last, log.round[~is_never], times[~is_never])
    is_open = np.zeros(log.num_rounds, dtype=np.bool_)
    is_open[log.round[is_never]] = True
    return last, is_open


def play_fitted(
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
        counts, seconds = play_deadlines(log, fresh, grid, overhead)
        arrivals += counts.mean(axis=0) / repeats
        length += seconds.mean(axis=0) / repeats
    return arrivals, length


def play_now(log: FederationLog, times: Floats, overhead: float) -> tuple[Floats, Floats]:
    """Return answers and seconds of each round at its own deadline, [T] each."""
    stops = log.limit_in_round
    is_in_time = times <= stops[log.round]
    last, is_open = _last_answers(log, times)
    seconds = np.where(is_open, log.deadline_in_round, np.minimum(last, stops))
    return sum_by(log.round, is_in_time, log.num_rounds), seconds + overhead


def round_overhead(log: FederationLog) -> float:
    """Return the seconds of a round that are no waiting: sending, aggregating, testing."""
    limits = log.deadline_in_round
    waited = np.where(log.late == 1, log.limit_in_round[log.round], limits[log.round])
    answered = np.where(log.arrived, log.seconds, waited)
    last = np.zeros(log.num_rounds)
    known = np.isfinite(answered)
    np.maximum.at(last, log.round[known], answered[known])
    spare = log.round_seconds - np.minimum(last, limits)
    untimed = log.arrived & np.isnan(log.seconds)
    spare[log.round[untimed]] = np.nan  # the last answer may be one without a time
    spare = spare[np.isfinite(spare)]
    return max(0.0, float(np.median(spare))) if spare.size else 0.0
