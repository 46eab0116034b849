from itertools import islice

import numpy as np
import pytest

from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.groups import group_of
from fedcohort.world.registry import Conditions, make_world


def play_pairs(rounds, **settings):
    """Return who answers and who is known to be online, [rounds, S, K] each."""
    world = make_world("groups", Conditions(**settings, knows_offline=True))
    pairs = list(islice(zip(world.rows, world.available, strict=False), rounds))
    return np.stack([row for row, _ in pairs]), np.stack([present for _, present in pairs])


def test_clients_are_dealt_to_groups_in_turn():
    assert group_of(7, 3).tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_the_clients_of_a_group_go_down_together_and_answer_by_their_own_coins():
    settings = {"num_clients": 6, "seeds": [4, 9], "rates": (0.3, 0.9)}
    options = {"groups": 2.0, "up": 0.5, "cycle": 8.0}
    answers, online = play_pairs(200, **settings, options=options)
    for group in (0, 1):
        members = online[:, :, group::2]
        assert (members == members[:, :, :1]).all()
    assert (online[:, :, 0] != online[:, :, 1]).any()
    coins = np.stack(list(islice(bernoulli(class_rates(6, (0.3, 0.9)), [4, 9]), 200)))
    np.testing.assert_array_equal(answers, coins & online)


def test_groups_that_are_always_up_are_the_world_bernoulli(take):
    conditions = Conditions(num_clients=8, seeds=[4, 9], options={"up": 1.0})
    world = make_world("groups", conditions)
    expected = bernoulli(class_rates(8), [4, 9])
    np.testing.assert_array_equal(take(world.rows, 100), take(expected, 100))
    np.testing.assert_array_equal(world.success_rates, class_rates(8))


def test_rates_and_correlations_are_those_of_the_product_of_coin_and_chain(take):
    runs = 20_000
    conditions = Conditions(
        num_clients=4,
        seeds=range(runs),
        rates=(0.5, 0.8),
        options={"groups": 2.0, "up": 0.6, "cycle": 10.0},
    )
    world = make_world("groups", conditions)
    rates = np.array([0.3, 0.3, 0.48, 0.48])
    np.testing.assert_allclose(world.success_rates, rates, rtol=1e-15)
    rows = take(world.rows, 3)[2].astype(float)  # [S, K]
    assert (np.abs(rows.mean(axis=0) - rates) <= 5 * np.sqrt(rates * (1 - rates) / runs)).all()

    # Clients 0 and 2 share a group: E[x0 x2] = 0.5 * 0.8 * 0.6. Clients 0 and 1 do not.
    together = (rows[:, 0] * rows[:, 2]).mean()
    assert abs(together - 0.24) <= 5 * np.sqrt(0.24 * 0.76 / runs)
    apart = (rows[:, 0] * rows[:, 1]).mean()
    assert abs(apart - 0.09) <= 5 * np.sqrt(0.09 * 0.91 / runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 5.0}, "world option groups must be at most 4, the number of clients, got 5"),
        ({"groups": 0.0}, "world option groups must be a whole number at least 1, got 0"),
        ({"groups": 2.5}, r"world option groups must be a whole number, got 2\.5"),
        ({"up": 1.1}, r"world option up must be between 0\.0 and 1\.0, got 1\.1"),
        ({"cycle": 3.0}, "world option cycle must be at least 5, .* got 3"),
    ],
)
def test_options_out_of_bounds_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_world("groups", Conditions(num_clients=4, seeds=[0], options=options))
