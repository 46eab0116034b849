import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.world.registry import Conditions, make_world

RATES = (0.1, 0.3, 0.9)


def test_the_classes_exchange_their_rates_at_the_round(take):
    conditions = Conditions(6, [7], rates=RATES, rounds=10, options={"at": 4.0})
    draws = stream(7, "world").random((10, 6))
    before = np.array([0.1, 0.1, 0.3, 0.3, 0.9, 0.9])
    after = np.array([0.9, 0.9, 0.3, 0.3, 0.1, 0.1])
    expected = np.concatenate([draws[:4] < before, draws[4:] < after])
    world = make_world("swap", conditions)
    np.testing.assert_array_equal(take(world.rows, 10)[:, 0], expected)
    # 4 of 10 rounds at the first rate, 6 at the other one
    np.testing.assert_allclose(world.success_rates, [0.58, 0.58, 0.3, 0.3, 0.42, 0.42], rtol=1e-14)


@pytest.mark.parametrize(
    ("rounds", "options", "first_rate"),
    [
        (10, {}, 0.5),  # the swap is half way
        (10, {"at": 0.0}, 0.9),
        (10, {"at": 99.0}, 0.1),  # it never comes
        (None, {"at": 3.0}, 0.9),  # for ever after
    ],
)
def test_the_success_rate_is_the_mean_of_the_rounds(rounds, options, first_rate):
    world = make_world("swap", Conditions(3, [7], rates=RATES, rounds=rounds, options=options))
    assert world.success_rates[0] == pytest.approx(first_rate, rel=1e-14)


def test_half_of_an_unknown_number_of_rounds_is_refused():
    with pytest.raises(ValueError, match="world option at must be given where the rounds are not"):
        make_world("swap", Conditions(3, [7], rates=RATES))


def test_a_round_that_is_none_is_refused():
    with pytest.raises(ValueError, match="world option at must be a whole number at least 0"):
        make_world("swap", Conditions(3, [7], rates=RATES, options={"at": -1.0}))
