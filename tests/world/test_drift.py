import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.world.registry import Conditions, make_world

RATES = (0.1, 0.3, 0.9)


def test_rates_move_in_a_straight_line_to_the_reverse(take):
    conditions = Conditions(3, [7], rates=RATES, rounds=8, options={"over": 4.0})
    shares = np.array([0, 0.25, 0.5, 0.75, 1, 1, 1, 1])[:, None]
    before = np.array([0.1, 0.3, 0.9])
    rates = before + shares * (before[::-1] - before)
    draws = stream(7, "world").random((8, 3))
    world = make_world("drift", conditions)
    np.testing.assert_array_equal(take(world.rows, 8)[:, 0], draws < rates)
    np.testing.assert_allclose(world.success_rates, rates.mean(axis=0), rtol=1e-14)


def test_by_default_the_drift_takes_all_rounds(take):
    known = make_world("drift", Conditions(3, [7], rates=RATES, rounds=50))
    given = make_world("drift", Conditions(3, [7], rates=RATES, rounds=50, options={"over": 50.0}))
    np.testing.assert_array_equal(take(known.rows, 50), take(given.rows, 50))
    # The mean of 0, 1/50, ..., 49/50 is 0.49.
    np.testing.assert_allclose(known.success_rates, [0.492, 0.3, 0.508], rtol=1e-14)


def test_without_rounds_the_end_must_be_given_and_lasts_for_ever():
    with pytest.raises(ValueError, match="world option over must be given where the rounds"):
        make_world("drift", Conditions(3, [7], rates=RATES))
    world = make_world("drift", Conditions(3, [7], rates=RATES, options={"over": 5.0}))
    np.testing.assert_allclose(world.success_rates, RATES[::-1], rtol=1e-14)
