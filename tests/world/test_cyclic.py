import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.world.registry import Conditions, make_world


def test_every_client_is_online_for_its_part_of_the_cycle(take):
    conditions = Conditions(4, [3], rates=(0.1, 0.34, 0.6, 1.0), options={"cycle": 10.0})
    world = make_world("cyclic", conditions)
    assert world.success_rates.tolist() == [0.1, 0.3, 0.6, 1.0]  # 3.4 rounds of ten are three
    rows = take(world.rows, 30)[:, 0]
    np.testing.assert_array_equal(rows[:10].sum(axis=0), [1, 3, 6, 10])
    np.testing.assert_array_equal(rows[:10], rows[10:20])
    np.testing.assert_array_equal(rows[:10], rows[20:])
    starts = (stream(3, "world").random(4) * 10).astype(int)
    for client, rounds_on in enumerate([1, 3, 6, 10]):
        expected = [(starts[client] + round) % 10 < rounds_on for round in range(10)]
        assert rows[:10, client].tolist() == expected


def test_phases_are_spread_over_the_whole_cycle(take):
    clients = 20_000
    conditions = Conditions(clients, [1], rates=(0.25,), options={"cycle": 4.0})
    rows = take(make_world("cyclic", conditions).rows, 4)[:, 0]
    error = 5 * np.sqrt(0.25 * 0.75 / clients)
    assert (np.abs(rows.mean(axis=1) - 0.25) <= error).all()


@pytest.mark.parametrize("cycle", [0.0, 2.5])
def test_a_cycle_that_is_none_is_refused(cycle):
    with pytest.raises(ValueError, match="world option cycle must be a whole number"):
        make_world("cyclic", Conditions(4, [0], options={"cycle": cycle}))
