from itertools import combinations

import numpy as np
import pytest
from exact import Rigged, chance_of_counts, members
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.rng import Streams, stream
from fedcohort.selection.sampling import (
    SAMPLERS,
    pivotal,
    shuffled,
    successive,
    systematic,
)

EXACT = {"systematic": systematic, "pivotal": pivotal}
ALMOST_ONE = 1 - 2.0**-53
TARGETS = {
    "equal": np.full(8, 3 / 8),
    "with ones and zeros": np.array([1, 0, 0.5, 0.25, 0, 0.25, 1, 0.7, 0.3, 1]),
    "very uneven": np.array([1, 0, 0.99, 0.01, 0.02, 0.98, 0.5, 0.95, 0.03, 0.02, 0.4, 0.1]),
    "graded": np.arange(1, 13) / 13,
}
SUCCESSIVE = [  # p, exact inclusion probabilities under one draw after the other
    ((1, 1 / 2, 1 / 4, 1 / 4), (17 / 21, 4 / 7, 13 / 42, 13 / 42)),
    ((3 / 4, 1 / 2, 1 / 2, 1 / 4), (19 / 28, 109 / 210, 109 / 210, 17 / 60)),
    ((1, 1 / 3, 1 / 3, 1 / 3), (4 / 5, 2 / 5, 2 / 5, 2 / 5)),
    (
        (9 / 10, 6 / 10, 3 / 10, 1 / 10, 1 / 10),
        (34803 / 45220, 22383 / 35530, 10323 / 29260, 61577 / 497420, 61577 / 497420),
    ),
    ((1, 1, 1 / 2, 1 / 4, 1 / 4), (2924 / 3465, 2924 / 3465, 237 / 385, 1207 / 3465, 1207 / 3465)),
]


def draw(sampler, p, draws, seed=0):
    return sampler(np.broadcast_to(p, (draws, p.size)), np.random.default_rng(seed))


def unshuffled(start, num_clients):
    """Return chance that leaves the clients of `systematic` in order, and the marks at a start."""
    return Rigged([start, *np.linspace(0, 0.9, num_clients)])


@st.composite
def targets(draw):
    """Return p that sums to a whole number: hundredths, ones, almost ones, dust and zeros."""
    parts = draw(st.lists(st.integers(0, 99), max_size=12))
    rest = -sum(parts) % 100
    extremes = draw(
        st.lists(st.sampled_from([1.0, 1 - 1e-13, 1 - 1e-10, 1e-300, 1e-17, 0.0]), max_size=8)
    )
    p = [part / 100 for part in [*parts, rest]] + extremes
    ones_last = draw(st.booleans())
    p = sorted(p) if ones_last else draw(st.permutations(p))
    return np.array(p)


CHANCE = st.lists(
    st.sampled_from([0.0, 2.0**-53, 0.5, ALMOST_ONE]) | st.floats(0, ALMOST_ONE),
    min_size=1,
    max_size=30,
)


@pytest.mark.parametrize("name", SAMPLERS)
@given(p=targets(), numbers=CHANCE, is_size_given=st.booleans())
def test_k_distinct_clients_are_drawn_whatever_chance_says(name, p, numbers, is_size_given):
    k = round(p.sum())
    clients = SAMPLERS[name](p, Rigged(numbers), k if is_size_given else None)
    assert clients.shape == (k,)
    assert (np.diff(clients) > 0).all()
    assert ((clients >= 0) & (clients < p.size)).all()
    assert (p[clients] > 0).all()
    if name in EXACT:
        assert np.isin(np.flatnonzero(p == 1), clients).all()


@pytest.mark.parametrize(
    ("start", "clients"),
    [
        (0.0, [2, 3]),
        (0.2499, [2, 3]),
        (0.25, [1, 3]),
        (0.4999, [1, 3]),
        (0.5, [0, 2]),
        (0.75, [0, 2]),
        (ALMOST_ONE, [0, 2]),
    ],
)
def test_marks_fall_where_the_hand_worked_case_says(start, clients):
    p = np.array([1 / 2, 1 / 4, 3 / 4, 1 / 2])
    assert systematic(p, unshuffled(start, 4)).tolist() == clients


@pytest.mark.parametrize(
    ("name", "target"),
    [*(("systematic", target) for target in TARGETS), ("pivotal", "very uneven")],
)
def test_exact_samplers_hit_their_targets(name, target):
    p = TARGETS[target]
    clients = draw(EXACT[name], p, 40_000)
    assert chance_of_counts(clients, p) > 1e-6
    inside = members(clients, p.size)
    assert inside[:, p == 1].all()
    assert not inside[:, p == 0].any()


@pytest.mark.parametrize("target", ["equal", "very uneven", "graded"])
def test_the_successive_sampler_misses_the_targets_when_they_differ(target):
    p = TARGETS[target]
    chance = chance_of_counts(draw(successive, p, 40_000), p)
    assert chance > 1e-6 if target == "equal" else chance < 1e-100


@pytest.mark.parametrize(("p", "inclusion"), SUCCESSIVE)
def test_the_successive_sampler_has_its_known_inclusion_probabilities(p, inclusion):
    draws = 100_000
    inclusion = np.array(inclusion)
    rates = members(draw(successive, np.array(p), draws), len(p)).mean(axis=0)
    error = 5 * np.sqrt(inclusion * (1 - inclusion) / draws)  # five standard errors
    assert (np.abs(rates - inclusion) <= error).all()
    smallest = np.argmin(p)
    # Those on the floor get at least the floor.
    assert rates[smallest] >= min(p) - error[smallest]


def test_every_pair_can_meet_under_the_systematic_sampler():
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.4, 0.5, 0.5, 0.6])
    inside = members(draw(systematic, p, 40_000), p.size).astype(int)
    together = inside.T @ inside
    assert all(together[i, j] > 0 for i, j in combinations(range(p.size), 2))


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_seed_draws_the_same_cohorts_and_another_seed_others(name):
    first, again, other = (draw(SAMPLERS[name], TARGETS["graded"], 50, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_row_drawn_together_is_the_row_drawn_alone(name):
    rows = np.stack([TARGETS["graded"], TARGETS["graded"][::-1], np.repeat([1.0, 0.0], 6)])
    together = Streams([stream(seed, "draw") for seed in range(3)])
    alone = [stream(seed, "draw") for seed in range(3)]
    for _ in range(300):  # beyond one block of uniforms read ahead
        clients = SAMPLERS[name](rows, together)
        for row, rng in enumerate(alone):
            np.testing.assert_array_equal(clients[row], SAMPLERS[name](rows[row], rng))


@pytest.mark.parametrize("name", SAMPLERS)
def test_nobody_and_everybody_can_be_drawn(name):
    assert SAMPLERS[name](np.zeros(4), stream(0)).shape == (0,)
    assert SAMPLERS[name](np.ones(4), stream(0)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", SAMPLERS)
def test_denormal_probabilities_raise_no_warning(name):
    assert SAMPLERS[name](np.array([1.0, 5e-324, 1e-310, 0.5, 0.5]), stream(0)).shape == (2,)


def test_a_sum_within_the_tolerance_never_loses_a_client():
    p = np.zeros(10_000)
    # This passes the check: the sum is short of 2 by 9.5e-9, and 1e-9 + 1e-12 K is allowed.
    p[:3] = (1 - 1.5e-9, 0.5, 0.5 - 8e-9)
    assert systematic(p, unshuffled(1 - 1e-9, 10_000)).size == 2


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.6], r"p must sum to one whole number in every row, got 1\.1 to 1\.1"),
        (
            [[0.5, 0.5], [1.0, 1.0]],
            r"p must sum to one whole number in every row, got 1\.0 to 2\.0",
        ),
        ([-0.5, 1.0, 0.5], r"p must be between 0 and 1, got -0\.5 to 1\.0"),
        ([1.5, 0.5], r"p must be between 0 and 1, got 0\.5 to 1\.5"),
        ([float("nan"), 0.5], r"p must sum to one whole number in every row, got nan to nan"),
        ([float("inf"), 0.5], r"p must sum to one whole number in every row, got inf to inf"),
    ],
)
def test_what_is_no_set_of_inclusion_probabilities_is_refused(name, p, message):
    with pytest.raises(ValueError, match=message):
        SAMPLERS[name](np.array(p), stream(0))


@pytest.mark.parametrize("count", [1, 2, 499, 500, 4096, 65_536, 65_537])
def test_a_shuffle_is_the_order_of_the_draws(count):
    draws = np.random.default_rng(count).random(count)
    np.testing.assert_array_equal(shuffled(draws), np.argsort(draws))


def test_draws_that_share_their_first_bits_are_shuffled_by_the_others():
    # 2,000 draws in 3 groups that 16 bits do not tell apart.
    groups = np.repeat([0.25, 0.5, 0.75], [700, 600, 700])
    draws = groups + np.random.default_rng(0).random(2000) * 2.0**-20
    np.testing.assert_array_equal(shuffled(draws), np.argsort(draws))
