"""Two worlds made from a log: one fitted to it, and one of its own rounds, resampled.

Both say who would answer in which round, for every client, asked or not. Both have the deadlines of
the log; `world_at` is a world with another one.
"""

from math import sin

import numpy as np

from fedcohort.advice.durations import Durations
from fedcohort.advice.log import FederationLog
from fedcohort.advice.persistence import Persistence
from fedcohort.advice.rates import Rates
from fedcohort.advice.special_functions import normal_quantile
from fedcohort.advice.together import Together
from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.early_stop import stop_margin

TINY = 1e-9


def draw_rates(rates: Rates, runs: int, rng: np.random.Generator) -> Floats:
    """Return rates that may be true of each client, for each run [S, K].

    The second half of the runs has the rates of the first half again, so that what two such runs
    share is what the rates do.

    Args:
        rates: How often clients answer.
        runs: Number of runs, S, even.
        rng: Source of randomness.
    """
    half = runs // 2
    picks = rng.choice(len(rates.draws), size=half, replace=half > len(rates.draws))
    return np.concatenate([rates.draws[picks], rates.draws[picks]])


def fitted_world(
    rates: Floats,
    persistence: Persistence,
    together: Together,
    rounds: int,
    rng: np.random.Generator,
) -> Bools:
    """Return who would answer in a world that is fitted to a log, [T, S, K].

    A client's state lasts with the fitted decay; clients that change it in one round share a part
    of their luck.

    Args:
        rates: Rates of each run and client [S, K].
        persistence: How long failures last; taken as 0 unless it is certain.
        together: How alike the answers of a round are; taken as 0 unless it is certain.
        rounds: Number of rounds, T.
        rng: Source of randomness.
    """
    thresholds = normal_quantile(rates)
    decay = persistence.decay if persistence.is_certain else 0.0
    sees_state = float(np.sqrt(persistence.share)) if persistence.is_certain else 1.0
    common = 0.0
    if together.is_certain:
        # Answers of correlation c come from normal numbers of correlation sin(pi c / 2).
        common = min(0.95, sin(np.pi / 2 * min(1.0, together.correlation.value)))

    world = np.empty((rounds, *thresholds.shape), dtype=np.bool_)
    state = _draw(thresholds, common, rng)
    for round in range(rounds):
        fresh = _draw(thresholds, common, rng)
        keeps = rng.random(thresholds.shape) < decay
        state = np.where(keeps, state, fresh)
        if sees_state < 1:
            is_seen = rng.random(thresholds.shape) < sees_state
            world[round] = np.where(is_seen, state, _draw(thresholds, common, rng))
        else:
            world[round] = state
    return world


def _draw(thresholds: Floats, common: float, rng: np.random.Generator) -> Bools:
    """Return answers [S, K] at the rates of the thresholds, alike within a run."""
    own = rng.standard_normal(thresholds.shape)
    shared = rng.standard_normal((len(thresholds), 1))
    return np.asarray(np.sqrt(common) * shared + np.sqrt(1 - common) * own < thresholds)


def rates_at(rates: Floats, log: FederationLog, durations: Durations, deadline: float) -> Floats:
    """Return how often clients would answer in time with another deadline than the log's.

    Args:
        rates: How often they answer in time with the deadlines of the log [..., K].
        log: The log.
        durations: How long answers take.
        deadline: The other deadline in seconds.
    """
    limits, counts = np.unique(log.limit_in_round, return_counts=True)
    now = np.zeros(log.num_clients)
    for limit, count in zip(limits.tolist(), counts.tolist(), strict=True):
        now += count / log.num_rounds * (1 - durations.tail(limit))
    then = 1 - durations.tail(deadline - float(stop_margin(deadline, log.grace)))

    wanted = rates * then / np.maximum(now, TINY)
    # No deadline gets more answers than would ever come.
    return np.asarray(np.minimum(wanted, np.maximum(rates, durations.answers)))


def world_at(
    world: Bools,
    log: FederationLog,
    durations: Durations,
    deadline: float,
    rng: np.random.Generator,
) -> Bools:
    """Return who would answer in time with another deadline than the log's, [T, S, K].

    A shorter deadline loses some of the answers, a longer one turns some failures into answers.

    Args:
        world: Who would answer in time with the deadlines of the log [T, S, K].
        log: The log.
        durations: How long answers take.
        deadline: The other deadline in seconds.
        rng: Source of randomness.
    """
    now = world.mean(axis=0)
    then = rates_at(now, log, durations, deadline)
    keeps = np.minimum(then / np.maximum(now, TINY), 1.0)
    gains = np.maximum(then - now, 0.0) / np.maximum(1 - now, TINY)

    other = np.empty_like(world)
    for round, row in enumerate(world):
        other[round] = rng.random(row.shape) < np.where(row, keeps, gains)
    return other


def resampled_world(
    log: FederationLog,
    rates: Floats,
    persistence: Persistence,
    source: Ints,
    rng: np.random.Generator,
) -> Bools:
    """Return who would answer if the log's own rounds came again, [T, S, K].

    A client that was asked in such a round does what it
    did. Any other client does what it did in its nearest round, with the probability that this is
    remembered, and else answers at its rate. What a client did in few rounds is no rate: worlds
    made of it alone would have clients that differ more than they do.

    Args:
        log: The log.
        rates: Rates of each run and client [S, K].
        persistence: How long failures last.
        source: Rounds of the log that come again in each run [S, T].
        rng: Source of randomness.
    """
    runs, rounds = source.shape
    order = np.lexsort((log.round, log.client))
    answers = log.arrived[order]
    times = log.round[order]
    number = log.asked_of_client.astype(np.int64)
    start = np.cumsum(number) - number
    nearest, remembered = _nearest(log, times, start, number, persistence)

    world = np.empty((rounds, runs, log.num_clients), dtype=np.bool_)
    for round in range(rounds):
        rows = source[:, round]
        keeps = rng.random((runs, log.num_clients)) < remembered[rows]
        fresh = rng.random((runs, log.num_clients)) < rates
        world[round] = np.where(keeps, answers[nearest[rows]], fresh)
    return world


def resampled_availability(log: FederationLog, source: Ints) -> Bools | None:
    """Return who can be asked if the log's own rounds come again, [T, S, K].

    Args:
        log: The log.
        source: Rounds of the log that come again in each run [S, T].

    Returns:
        None if everybody could be asked in all rounds, or if the log does not say.
    """
    if log.available is None or log.available.all():
        return None
    return log.available[source.T]


def _nearest(
    log: FederationLog,
    times: Ints,
    start: Ints,
    number: Ints,
    persistence: Persistence,
) -> tuple[Ints, Floats]:
    """Return the place of each client's nearest answer in each round, and how far it counts."""
    nearest = np.zeros((log.num_rounds, log.num_clients), dtype=np.int64)
    remembered = np.zeros((log.num_rounds, log.num_clients))
    all_rounds = np.arange(log.num_rounds)
    share = persistence.share if persistence.is_certain else 0.0
    for client in np.flatnonzero(number):
        own = times[start[client] : start[client] + number[client]]
        after = np.clip(np.searchsorted(own, all_rounds), 0, len(own) - 1)
        before = np.maximum(after - 1, 0)
        is_before = np.abs(own[before] - all_rounds) < np.abs(own[after] - all_rounds)
        chosen = np.where(is_before, before, after)
        gap = np.abs(own[chosen] - all_rounds)
        nearest[:, client] = start[client] + chosen
        remembered[:, client] = np.where(gap == 0, 1.0, share * persistence.decay**gap)
    return nearest, remembered
