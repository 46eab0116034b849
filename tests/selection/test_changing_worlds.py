"""Worlds that change, and clients that come and go: K = 100, k = 20, T = 2500, classes as ever.

The expected numbers of updates come from 60 seeds of another program. The error is four standard
errors of the difference between its mean and ours.
"""

import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.rounds import play
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.markov import mean_lengths, on_off

SEEDS, ROUNDS, SEEDS_THERE = 24, 2500, 60
RATES = class_rates(100)
pytestmark = pytest.mark.slow


def arrivals(selector, world, available=None):
    """Return the number of updates that arrived, [S]."""
    records = play(selector, world, ROUNDS, available=available)
    return sum(record.arrived.sum(axis=-1) for record in records)


def selector(name, sampler="systematic"):
    federation = Federation(100, 20, range(SEEDS), horizon=ROUNDS, sampler=sampler)
    return make_selector(name, federation)


def swapped():
    """Yield who would answer: after half of the rounds the best are the worst, and vice versa."""
    before = bernoulli(RATES, range(SEEDS))
    after = bernoulli(RATES[::-1], range(SEEDS, 2 * SEEDS))
    for round in range(ROUNDS):
        yield next(before if round < ROUNDS // 2 else after)


def half_online():
    """Yield who is online: each client half of the time, in turns of 50 rounds on average.

    Nobody wrote down how long the turns of the other program were. With these both of its
    selectors agree with ours.
    """
    streams = [stream(seed, "online") for seed in range(SEEDS)]
    online = np.stack([chance.random(100) < 0.5 for chance in streams])
    for _ in range(ROUNDS):
        yield online
        online = online ^ np.stack([chance.random(100) < 0.02 for chance in streams])


def error_of(totals):
    return 4 * totals.std(ddof=1) * np.sqrt(1 / SEEDS + 1 / SEEDS_THERE)


@pytest.mark.parametrize(
    ("name", "sampler", "expected"),
    [
        ("e3cs-0", "successive", 24_047),
        ("e3cs-0", "systematic", 24_363),
        ("e3cs-robust", "systematic", 42_561),
        ("random", "systematic", 23_757),
    ],
)
def test_after_a_swap_the_papers_update_is_as_good_as_chance_and_the_robust_one_recovers(
    name, sampler, expected
):
    totals = arrivals(selector(name, sampler), swapped())
    assert abs(totals.mean() - expected) <= error_of(totals)


@pytest.mark.parametrize(("name", "expected"), [("e3cs-0", 33_781), ("e3cs-robust", 37_048)])
def test_with_half_of_the_clients_online_the_robust_update_gets_more(name, expected):
    world = bernoulli(RATES, range(SEEDS))
    totals = arrivals(selector(name), world, available=half_online())
    assert abs(totals.mean() - expected) <= error_of(totals)


MARKOV = [
    (50, "e3cs-0", "successive", 42_224),
    (50, "e3cs-0", "systematic", 42_663),
    (50, "e3cs-robust", "systematic", 45_818),
    (500, "e3cs-0", "successive", 43_931),
    (500, "e3cs-0", "systematic", 41_483),
    (500, "e3cs-robust", "systematic", 48_710),
]


@pytest.mark.parametrize(("cycle", "name", "sampler", "expected"), MARKOV)
def test_where_failures_last_the_robust_update_gets_what_another_program_got(
    cycle, name, sampler, expected
):
    # There a client leaves with chance 2 (1 - rate) / cycle and returns with 2 rate / cycle, so
    # that all clients forget equally fast and a client's own cycle is at least twice as long.
    world = on_off(RATES, cycle / (2 * (1 - RATES)), cycle / (2 * RATES), range(SEEDS))
    totals = arrivals(selector(name, sampler), world)
    assert abs(totals.mean() - expected) <= error_of(totals)


def test_our_markov_world_changes_faster_than_that_one_and_so_gives_less():
    # Here the mean cycle of every client is 50 rounds; there it is 50 / (2 rate (1 - rate)).
    on, off = mean_lengths(RATES, {"cycle": 50.0})
    np.testing.assert_allclose(on + off, 50.0)
    assert (2 * (on + off) - 1e-9 <= 50 / (2 * RATES * (1 - RATES))).all()
    totals = arrivals(selector("e3cs-robust"), on_off(RATES, on, off, range(SEEDS)))
    assert totals.mean() < 45_818 - error_of(totals)
