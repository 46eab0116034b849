import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.world.registry import Conditions, make_world


def test_rates_follow_the_time_of_day_in_each_zone(take):
    options = {"period": 4.0, "mean": 0.5, "swing": 0.5, "zones": 2.0}
    conditions = Conditions(4, [3], rates=(0.8,), options=options)
    # Zone 0 in rounds 0 to 3: sin is 0, 1, 0, -1. Zone 1 is half a day ahead.
    day = 0.8 * np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    rates = np.tile(day, (5, 2))  # five days, clients in turn
    draws = stream(3, "world").random((20, 4))
    world = make_world("diurnal", conditions)
    is_far = np.abs(draws - rates) > 1e-12
    rows = take(world.rows, 20)[:, 0]
    np.testing.assert_array_equal(rows[is_far], (draws < rates)[is_far])
    assert world.success_rates.tolist() == [0.4] * 4


def test_success_rates_are_the_long_run_means(take):
    rates = (0.2, 0.9)
    runs = 3000
    options = {"failure": 0.25, "period": 6.0}
    conditions = Conditions(4, range(runs), rates=rates, options=options)
    world = make_world("diurnal", conditions)
    np.testing.assert_allclose(world.success_rates, [0.075, 0.075, 0.3375, 0.3375], rtol=1e-14)
    seen = take(world.rows, 6).mean(axis=(0, 1))
    # Answers are independent; their variances are at most those of constant rates.
    error = 5 * np.sqrt(world.success_rates * (1 - world.success_rates) / (6 * runs))
    assert (np.abs(seen - world.success_rates) <= error).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": 0.3}, r"world option swing must be at most 0\.3, .* got 0\.4"),
        ({"mean": 0.8}, r"world option swing must be at most 0\.2, .* got 0\.4"),
        ({"period": 1.0}, "world option period must be a whole number at least 2, got 1"),
        ({"zones": 0.0}, "world option zones must be a whole number at least 1, got 0"),
    ],
)
def test_days_with_impossible_rates_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_world("diurnal", Conditions(4, [0], options=options))
