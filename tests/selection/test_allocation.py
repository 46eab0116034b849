from fractions import Fraction as F
from math import ceil, log

import numpy as np
import pytest
from exact import printed_alphas, total_at, water_fill
from hypothesis import assume, given
from hypothesis import strategies as st

from fedcohort.selection.allocation import allocate, allocate_among

GOLDEN = [  # K = len(w), k, sigma, w, p, S, alpha
    (2, 0, "1 1 1 1", "1/2 1/2 1/2 1/2", set(), "2"),
    (2, 0, "1 2 3 4", "1/5 2/5 3/5 4/5", set(), "5"),
    (2, 0, "1 1 1 9", "1/3 1/3 1/3 1", {3}, "3"),
    (2, "1/4", "1 1 1 9", "1/3 1/3 1/3 1", set(), "12"),
    (2, "1/4", "1 1 1 10", "1/3 1/3 1/3 1", {3}, "12"),
    (3, "3/8", "1 1 2 3", "19/32 19/32 13/16 1", {3}, "32/7"),
    (3, "3/16", "1 2 5 6", "19/48 29/48 1 1", {2, 3}, "24/5"),
    (3, 0, "1 1 1 50 50", "1/3 1/3 1/3 1 1", {3, 4}, "3"),
    (3, "3/10", "1 1 1 50 50", "1/3 1/3 1/3 1 1", {3, 4}, "30"),
    (3, 0, "1 2 4 8 64", "1/7 2/7 4/7 1 1", {3, 4}, "7"),
    (3, "1/5", "1 2 4 8 64", "7/25 9/25 13/25 21/25 1", {4}, "25/2"),
    (2, "1/8", "1 1 1 1e30", "1/3 1/3 1/3 1", {3}, "24/5"),
    (3, 0, "1 2 3 4", "1/3 2/3 1 1", {3}, "3"),
    (1, "1/4", "1 3", "3/8 5/8", set(), "8"),
]
VALUES = st.one_of(st.floats(-3, 3), st.floats(-800, 800), st.sampled_from([0.0, 0.0, 1.0, -800.0]))


@st.composite
def instances(draw, most=30):
    """Return log-weights, k and the floor of a random quota, which is 0, 1 or anything between."""
    logs = np.array(draw(st.lists(VALUES, min_size=1, max_size=most)))
    k = draw(st.integers(1, logs.size))
    return logs, k, draw(st.sampled_from([0.0, 1.0]) | st.floats(0, 1)) * k / logs.size


def fractions(words):
    return [F(word) for word in words.split()]


@pytest.mark.parametrize(("k", "sigma", "weights", "p", "capped", "alpha"), GOLDEN)
def test_hand_worked_cases_come_out_exactly(k, sigma, weights, p, capped, alpha):
    got = allocate(np.log([float(w) for w in weights.split()]), k, float(F(sigma)))
    np.testing.assert_allclose(
        got.inclusion, np.array(fractions(p), dtype=float), rtol=0, atol=1e-15
    )
    assert set(np.flatnonzero(got.capped)) == capped
    assert np.exp(got.log_cap) / (1 - float(F(sigma))) == pytest.approx(float(F(alpha)), rel=1e-14)


@pytest.mark.parametrize(("k", "sigma", "weights", "p", "capped", "alpha"), GOLDEN)
def test_the_rational_solution_of_the_tests_reproduces_the_hand_worked_cases(
    k, sigma, weights, p, capped, alpha
):
    assert water_fill(fractions(weights), k, F(sigma)) == (fractions(p), capped, F(alpha))


@pytest.mark.parametrize(
    ("k", "sigma", "p"), [(2, 0.5, 0.5), (4, 0.0, 1.0), (4, 0.3, 1.0), (4, 1.0, 1.0)]
)
def test_nothing_is_given_by_weight_when_the_floor_or_the_cohort_takes_all(k, sigma, p):
    got = allocate([900.0, 1.0, -900.0, 0.0], k, sigma)
    assert (got.inclusion == p).all()
    assert not got.capped.any()
    assert got.log_cap == np.inf


@pytest.mark.parametrize("gap", [3e-13, 1e-12, 3e-12, 1e-11, 1e-9])
@pytest.mark.parametrize(("clients", "k"), [(100, 20), (7, 3), (60_000, 600)])
def test_a_floor_a_hair_below_all_leaves_everyone_the_same(clients, k, gap):
    got = allocate(np.zeros(clients), k, k / clients * (1 - gap))
    np.testing.assert_allclose(got.inclusion, k / clients, rtol=1e-9)
    assert not got.capped.any()


def test_one_client_alone_is_always_asked():
    assert allocate([-700.0], 1).inclusion == [1.0]


@given(instances())
def test_probabilities_sum_to_k_between_the_floor_and_one(instance):
    logs, k, floor = instance
    p = allocate(logs, k, floor).inclusion
    assert abs(p.sum() - k) <= 1e-12 * logs.size
    assert p.min() >= floor * (1 - 1e-12)
    assert p.max() <= 1


@given(instances())
def test_more_weight_never_means_less_probability_and_ties_are_equal(instance):
    logs, k, floor = instance
    p = allocate(logs, k, floor).inclusion
    order = np.argsort(logs, kind="stable")
    rise = np.diff(p[order])
    is_tie = np.diff(logs[order]) == 0
    assert (rise >= -4e-16).all()
    assert (rise[is_tie] == 0).all()


@given(instances(), st.randoms(use_true_random=False))
def test_renaming_clients_renames_their_probabilities(instance, random):
    logs, k, floor = instance
    order = random.sample(range(logs.size), logs.size)
    got = allocate(logs, k, floor)
    renamed = allocate(logs[order], k, floor)
    np.testing.assert_allclose(renamed.inclusion, got.inclusion[order], rtol=0, atol=1e-13)


@given(instances(), st.floats(-1e4, 1e4))
def test_only_ratios_of_weights_matter(instance, shift):
    logs, k, floor = instance
    moved = allocate(logs + shift, k, floor).inclusion
    expected = allocate(logs, k, floor).inclusion
    np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-11)  # ulp(1e4) = 2e-12


@given(instances())
def test_capped_are_those_above_the_cap_and_fewer_than_rho(instance):
    logs, k, floor = instance
    got = allocate(logs, k, floor)
    assume(np.isfinite(got.log_cap))
    assert got.capped[logs > got.log_cap + 1e-9].all()
    assert not got.capped[logs < got.log_cap - 1e-9].any()
    assert (got.inclusion[got.capped] == 1).all()
    assert got.capped.sum() < (k - logs.size * floor) / (1 - floor) + 1e-9


@given(instances())
def test_uncapped_clients_share_what_is_above_the_floor_by_weight(instance):
    logs, k, floor = instance
    got = allocate(logs, k, floor)
    assume(np.isfinite(got.log_cap))
    free = np.flatnonzero(logs <= got.log_cap)
    top = free[np.argmax(logs[free])]
    excess = got.inclusion - floor
    np.testing.assert_allclose(
        excess[free], excess[top] * np.exp(logs[free] - logs[top]), rtol=0, atol=1e-14
    )
    if floor == 0:
        seen = free[got.inclusion[free] > 1e-300]
        odds = np.log(got.inclusion[seen] / got.inclusion[top])
        np.testing.assert_allclose(odds, logs[seen] - logs[top], rtol=0, atol=1e-12)


@given(instances(), st.integers(0, 1000), st.floats(0, 50))
def test_raising_one_weight_raises_its_probability_and_lowers_no_other_less(instance, who, more):
    logs, k, floor = instance
    who %= logs.size
    raised = logs.copy()
    raised[who] += more
    change = allocate(raised, k, floor).inclusion - allocate(logs, k, floor).inclusion
    assert change[who] >= -1e-13
    assert (np.delete(change, who) <= 1e-13).all()


@given(instances())
def test_no_probability_falls_when_the_cohort_grows(instance):
    logs, k, floor = instance
    bigger = allocate(logs, min(k + 1, logs.size), floor).inclusion
    assert (bigger >= allocate(logs, k, floor).inclusion - 1e-13).all()


@given(instances())
def test_a_row_of_a_batch_is_what_it_is_alone(instance):
    logs, k, floor = instance
    batch = np.stack([logs, logs[::-1], 0.5 * logs])
    together = allocate(batch, k, floor)
    for row, alone in enumerate(allocate(logs, k, floor) for logs in batch):
        np.testing.assert_array_equal(together.inclusion[row], alone.inclusion)
        np.testing.assert_array_equal(together.capped[row], alone.capped)
        assert together.log_cap[row] == alone.log_cap


@given(st.lists(st.integers(1, 10**6) | st.integers(1, 9), min_size=2, max_size=40), st.data())
def test_floats_agree_with_rationals(weights, data):
    k = data.draw(st.integers(1, len(weights) - 1))
    sigma = F(data.draw(st.integers(0, 15)), 16) * k / len(weights)
    exact, capped, alpha = water_fill(weights, k, sigma)
    got = allocate(np.log(weights), k, float(sigma))
    np.testing.assert_allclose(
        got.inclusion, np.array(exact, dtype=float), rtol=0, atol=1e-13 * len(weights)
    )
    assert np.exp(got.log_cap) == pytest.approx(float(alpha * (1 - sigma)), rel=1e-12)
    on_cap = {i for i, w in enumerate(weights) if w == alpha * (1 - sigma)}
    assert set(np.flatnonzero(got.capped)) - on_cap == capped


def test_one_jackpot_leaves_the_others_their_shares():
    logs = np.array([2000.0, 0.0, log(2), log(3)])
    np.testing.assert_allclose(
        allocate(logs, 2).inclusion, [1, 1 / 6, 2 / 6, 3 / 6], rtol=0, atol=1e-15
    )


def test_a_spread_of_four_thousand_nats_leaves_one_winner_per_slot_and_one_to_share():
    logs = np.array([2000.0, 1000.0, 0.0, -1000.0, -2000.0])
    np.testing.assert_array_equal(allocate(logs, 2).inclusion, [1, 1, 0, 0, 0])
    floored = allocate(logs, 2, 0.1).inclusion  # R = 1.5, of which the first takes 0.9
    expected = [1, 0.7, 0.1, 0.1, 0.1]
    np.testing.assert_allclose(floored, expected, rtol=0, atol=1e-13)  # ulp(1000) = 1.1e-13


def test_k_winners_over_dust_are_certain_and_the_dust_is_not_impossible():
    logs = np.array([0.0] * 3 + [-700.0] * 5)
    p = allocate(logs, 3).inclusion
    assert (p[:3] == 1).all()
    np.testing.assert_allclose(np.log(p[3:]), -700.0, rtol=0, atol=1e-9)
    assert allocate(np.array([0.0] * 3 + [-800.0] * 5), 3).inclusion.sum() == 3


@pytest.mark.parametrize("ratio", [F(1, 2), F(9, 10), F(1, 1000)])
def test_geometric_weights_agree_with_rationals(ratio):
    weights = [ratio**i for i in range(60)]
    logs = np.arange(60) * (log(ratio.numerator) - log(ratio.denominator))
    exact, capped, _ = water_fill(weights, 12, F(1, 50))
    got = allocate(logs, 12, 0.02)
    np.testing.assert_allclose(got.inclusion, np.array(exact, dtype=float), rtol=0, atol=1e-13 * 60)
    assert set(np.flatnonzero(got.capped)) == capped


@pytest.mark.parametrize("spread", [0.0, 1e-15, 1e-12, 1e-9])
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_ties_on_the_cap_divide_by_nothing(spread, floor):
    logs = np.full(100, -500.0)
    logs[:20] = 223.0 * (1 + spread * np.arange(20) / 20)
    got = allocate(logs, 20, floor)
    assert abs(got.inclusion.sum() - 20) <= 1e-10
    assert got.inclusion.max() <= 1
    assert got.inclusion.min() >= floor
    assert got.capped.sum() < 20
    if not floor:
        # Twenty clients share twenty slots, and the rest is dust.
        np.testing.assert_allclose(got.inclusion[:20], 1.0, rtol=0, atol=1e-12)


def test_the_first_printed_case_search_gives_probabilities_that_do_not_sum_to_k():  # erratum E1
    weights, sigma = [1, 1, 2, 3], F(3, 8)
    assert printed_alphas(weights, 3, sigma) == {F(14, 3)}
    assert total_at(F(14, 3), weights, sigma) == F(167, 56) != 3
    assert allocate(np.log(weights), 3, 0.375).inclusion.sum() == pytest.approx(3, abs=1e-15)


def test_the_second_printed_case_search_accepts_two_alphas():  # erratum E1
    weights, sigma = [1, 2, 5, 6], F(3, 16)
    assert printed_alphas(weights, 3, sigma) == {F(24, 5), F(56, 9)}
    assert total_at(F(56, 9), weights, sigma) == F(319, 112)
    assert total_at(F(24, 5), weights, sigma) == 3
    assert allocate(np.log(weights), 3, 3 / 16).inclusion.sum() == pytest.approx(3, abs=1e-15)


@given(instances(), st.data())
def test_allocating_among_some_is_allocating_to_them_alone(instance, data):
    logs, _, _ = instance
    available = np.array(data.draw(st.lists(st.booleans(), min_size=logs.size, max_size=logs.size)))
    assume(available.any())
    k = data.draw(st.integers(1, int(available.sum())))
    floor = data.draw(st.floats(0, 1)) * k / available.sum()
    got = allocate_among(available, logs, k, np.array(floor))
    alone = allocate(logs[available], k, floor)
    np.testing.assert_array_equal(got.inclusion[available], alone.inclusion)
    np.testing.assert_array_equal(got.capped[available], alone.capped)
    assert got.log_cap == alone.log_cap
    assert not got.inclusion[~available].any()
    assert not got.capped[~available].any()


def test_the_client_of_rank_rho_is_never_capped():
    rng = np.random.default_rng(3)
    for _ in range(200):
        k = int(rng.integers(1, 30))
        floor = rng.random() * 0.99 * k / 30
        logs = rng.normal(0, 10, 30)
        got = allocate(logs, k, floor)
        assert not got.capped[np.argsort(-logs)[ceil((k - 30 * floor) / (1 - floor)) - 1]]


@pytest.mark.parametrize(
    ("logs", "k", "floor", "message"),
    [
        ([0.0, 0.0], 3, 0.0, r"cohort_size must be a whole number between 1 and 2, got 3"),
        ([0.0, 0.0], 0, 0.0, r"cohort_size must be a whole number between 1 and 2, got 0"),
        ([0.0, 0.0], 1.0, 0.0, r"cohort_size must be a whole number between 1 and 2, got 1\.0"),
        ([0.0, 0.0], True, 0.0, r"cohort_size must be a whole number between 1 and 2, got True"),
        ([0.0, 0.0], 1, -0.1, r"floor must be between 0\.0 and 0\.5\d*, got -0\.1"),
        ([0.0, 0.0], 1, 0.6, r"floor must be between 0\.0 and 0\.5\d*, got 0\.6"),
        ([0.0, 0.0], 1, float("nan"), r"floor must be between 0\.0 and 0\.5\d*, got nan"),
        (
            [0.0, float("nan")],
            1,
            0.0,
            r"log_weights must be finite, between -1e\+300 and 1e\+300, got nan",
        ),
        (
            [0.0, float("inf")],
            1,
            0.0,
            r"log_weights must be finite, between -1e\+300 and 1e\+300, got inf",
        ),
        (
            [float("inf")] * 2,
            1,
            0.0,
            r"log_weights must be finite, between -1e\+300 and 1e\+300, got inf",
        ),
        (
            [0.0, -float("inf")],
            1,
            0.0,
            r"log_weights must be finite, between -1e\+300 and 1e\+300, got -inf",
        ),
        (
            [],
            1,
            0.0,
            r"log_weights must be an array \[\.\.\., K\] with K of at least 1, got shape \(0,\)",
        ),
        (
            0.0,
            1,
            0.0,
            r"log_weights must be an array \[\.\.\., K\] with K of at least 1, got shape \(\)",
        ),
    ],
)
def test_bad_arguments_are_named_with_bound_and_value(logs, k, floor, message):
    with pytest.raises(ValueError, match=message):
        allocate(logs, k, floor)
