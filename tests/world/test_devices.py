from itertools import islice

import numpy as np
import pytest
from scipy import stats

from fedcohort.world.devices import (
    COMPUTE_MEDIANS,
    COMPUTE_SPREADS,
    LINK_MEDIAN,
    LINK_SPREAD,
    SLOW_SHARE,
    device_seconds,
    draw_devices,
)
from fedcohort.world.registry import Conditions, make_world


def make_conditions(**changed):
    settings = {
        "num_clients": 50,
        "seeds": [4, 9],
        "data_sizes": np.full((2, 50), 40),
        "epochs": np.full((2, 50), 2),
        "model_bytes": 100_000,
        "deadline": 4.0,
    }
    return Conditions(**(settings | changed))


def test_a_round_is_computing_and_sending_the_model_twice():
    # 10 ms * 200 samples = 2 s; 1 MB down and up at 8 Mbit/s = 2 s
    seconds = device_seconds(
        np.array([10.0, 10.0]), np.array([8000.0, 16000.0]), np.array([200, 400]), 1_000_000
    )
    assert seconds.tolist() == [4.0, 5.0]


def test_devices_follow_the_fitted_laws():
    count = 50_000
    milliseconds, kilobits = draw_devices(count, rng=1)

    def compute_law(logs):
        fast, slow = (
            stats.norm(np.log(median), spread).cdf(logs)
            for median, spread in zip(COMPUTE_MEDIANS, COMPUTE_SPREADS, strict=True)
        )
        return (1 - SLOW_SHARE) * fast + SLOW_SHARE * slow

    assert stats.kstest(np.log(milliseconds), compute_law).pvalue > 1e-4
    link = stats.norm(np.log(LINK_MEDIAN), LINK_SPREAD)
    assert stats.kstest(np.log(kilobits), link.cdf).pvalue > 1e-4
    correlation = np.corrcoef(np.log(milliseconds), np.log(kilobits))[0, 1]
    assert abs(correlation) <= 5 / np.sqrt(count)


def test_without_jitter_the_seconds_of_a_client_stay_and_decide_its_rate():
    world = make_world("devices", make_conditions())
    first, second = islice(world.rows, 2)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(world.success_rates, first <= 4.0)
    assert 0 < world.success_rates.mean() < 1
    for position, seed in enumerate([4, 9]):
        milliseconds, kilobits = draw_devices(50, seed)
        expected = device_seconds(milliseconds, kilobits, np.full(50, 80), 100_000)
        np.testing.assert_array_equal(first[position], expected)


def test_options_slow_computing_and_speed_up_links():
    plain = next(make_world("devices", make_conditions(model_bytes=0)).rows)
    slow = next(
        make_world("devices", make_conditions(model_bytes=0, options={"compute": 3.0})).rows
    )
    np.testing.assert_allclose(slow, 3 * plain, rtol=1e-14)
    idle = {"compute": 0.0}
    sent = next(make_world("devices", make_conditions(options=idle)).rows)
    quick = next(make_world("devices", make_conditions(options={**idle, "link": 4.0})).rows)
    np.testing.assert_allclose(quick, sent / 4, rtol=1e-14)


def test_jitter_is_log_normal_and_rates_are_those_of_its_law(take):
    rounds = 4000
    world = make_world("devices", make_conditions(options={"jitter": 0.5}))
    rows = take(world.rows, rounds)
    median = next(make_world("devices", make_conditions()).rows)
    logs = np.log(rows / median).ravel()
    assert abs(logs.mean()) <= 5 * 0.5 / np.sqrt(logs.size)
    assert abs(logs.std() - 0.5) <= 5 * 0.5 / np.sqrt(2 * logs.size)
    rates = world.success_rates
    np.testing.assert_allclose(rates, stats.norm.cdf(np.log(4.0 / median) / 0.5), atol=1e-12)
    error = 5 * np.sqrt(rates * (1 - rates) / rounds) + 5 / rounds
    assert (np.abs((rows <= 4.0).mean(axis=0) - rates) <= error).all()


@pytest.mark.parametrize("option", ["compute", "jitter"])
def test_negative_options_are_refused(option):
    with pytest.raises(ValueError, match=f"world option {option} must be"):
        make_world("devices", make_conditions(options={option: -1.0}))


@pytest.mark.parametrize("option", ["compute", "link"])
def test_factors_that_no_number_of_seconds_can_hold_are_refused(option):
    with pytest.raises(ValueError, match=f"world option {option} must be between .*, got 1e\\+308"):
        make_world("devices", make_conditions(options={option: 1e308}))
