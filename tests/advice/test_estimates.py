from math import erfc, lgamma, sqrt

import numpy as np
import pytest

from fedcohort.advice.estimates import (
    Interval,
    block_length,
    bootstrap_rounds,
    bootstrap_weights,
    more_rounds,
    plain,
    ratio_interval,
    share_interval,
)
from fedcohort.advice.special_functions import log_gamma, normal_quantile, normal_tail


def test_the_gamma_function_is_that_of_the_standard_library():
    values = np.array([1e-3, 0.3, 1.0, 2.5, 7.0, 300.5, 1e6])
    exact = [lgamma(value) for value in values]
    assert np.allclose(log_gamma(values), exact, rtol=1e-9, atol=1e-9)


def test_the_normal_tail_is_that_of_the_standard_library():
    values = np.linspace(-8, 8, 65)
    exact = [erfc(value / sqrt(2)) / 2 for value in values]
    assert np.allclose(normal_tail(values), exact, rtol=3e-7, atol=0)


def test_the_quantile_undoes_the_tail():
    shares = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6])
    assert np.allclose(1 - normal_tail(normal_quantile(shares)), shares, rtol=1e-4)


def test_blocks_of_rounds_stay_together_and_go_around_the_end():
    picks = bootstrap_rounds(10, draws=50, block=5, rng=np.random.default_rng(0))
    steps = (picks[:, 1:5] - picks[:, :4]) % 10
    assert (steps == 1).all()
    weights = bootstrap_weights(10, draws=50, block=5, rng=np.random.default_rng(0))
    assert (weights.sum(axis=1) == 10).all()
    counted = [np.bincount(row, minlength=10) for row in picks]
    assert (weights == counted).all()


def test_a_block_is_longer_where_failures_last_and_leaves_five_of_them():
    assert block_length(1000, 0.0) == 10
    assert block_length(1000, 10.0) == 30
    assert block_length(50, 100.0) == 10


def test_the_interval_of_a_ratio_is_about_two_standard_errors_wide():
    rng = np.random.default_rng(1)
    above = rng.binomial(10, 0.3, size=400).astype(float)
    below = np.full(400, 10.0)
    weights = bootstrap_weights(400, 2000, 1, rng)
    interval = ratio_interval(above, below, weights, block=1)
    error = np.sqrt(0.3 * 0.7 / 4000)
    assert interval.value == pytest.approx(above.sum() / 4000)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_four_times_the_rounds_halve_an_interval():
    assert more_rounds(50, width=0.2, wanted=0.1) == 150
    assert more_rounds(50, width=0.05, wanted=0.1) == 0
    assert more_rounds(50, width=float("nan"), wanted=0.1) is None


def test_nobody_promises_an_answer_after_a_hundred_times_as_many_rounds():
    """Ten times as wide takes 99 times as many rounds more."""
    assert more_rounds(30, width=1.0, wanted=0.1) == 30 * 99
    assert more_rounds(30, width=7.0, wanted=0.05) is None


def test_the_interval_of_a_share_ends_at_0_and_at_1():
    """One of 50 answers is missing: resamples reach 1, and few rounds widen the interval."""
    above = np.full(5, 10.0)
    above[2] = 9.0
    below = np.full(5, 10.0)
    weights = bootstrap_weights(5, 400, 1, np.random.default_rng(0))
    assert ratio_interval(above, below, weights, block=1).high > 1
    found = share_interval(above, below, weights, block=1)
    assert (found.value, found.high) == (0.98, 1.0)
    missing = share_interval(below - above, below, weights, block=1)
    assert (missing.value, missing.low) == (pytest.approx(0.02), 0.0)


def test_rounds_without_a_failure_do_not_prove_that_there_is_none():
    """The share s with s^8 = 1/40 would give 8 such rounds in one log of forty."""
    below = np.array([3.0] * 8 + [0.0])  # nobody was asked in the last round
    weights = bootstrap_weights(9, 50, 1, np.random.default_rng(0))
    always = share_interval(below, below, weights, block=1)
    assert (always.value, always.high) == (1.0, 1.0)
    assert always.low**8 == pytest.approx(1 / 40)
    never = share_interval(np.zeros(9), below, weights, block=1)
    assert (never.value, never.low, never.high) == (0.0, 0.0, pytest.approx(1 - always.low))


def test_plain_values_have_no_nan():
    value = {"a": np.array([1.0, np.nan]), "b": Interval(1.0, float("-inf"), 2.0), "c": (1, "x")}
    expected = {"a": [1.0, None], "b": {"value": 1.0, "low": None, "high": 2.0}, "c": [1, "x"]}
    assert plain(value) == expected
