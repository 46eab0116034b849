from math import erfc, lgamma, sqrt

import numpy as np
import pytest

from fedcohort.advice.estimates import (
    Interval,
    block_length,
    bootstrap_rounds,
    bootstrap_weights,
    log_gamma,
    more_rounds,
    normal_quantile,
    normal_tail,
    plain,
    ratio_interval,
)


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
    assert interval.width == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_four_times_the_rounds_halve_an_interval():
    assert more_rounds(50, width=0.2, wanted=0.1) == 150
    assert more_rounds(50, width=0.05, wanted=0.1) == 0
    assert more_rounds(50, width=float("nan"), wanted=0.1) is None


def test_plain_values_have_no_nan():
    value = {"a": np.array([1.0, np.nan]), "b": Interval(1.0, float("-inf"), 2.0), "c": (1, "x")}
    expected = {"a": [1.0, None], "b": {"value": 1.0, "low": None, "high": 2.0}, "c": [1, "x"]}
    assert plain(value) == expected
