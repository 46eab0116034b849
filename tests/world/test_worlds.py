import numpy as np
import pytest

from fedcohort.world.registry import WORLDS, Conditions, make_world


@pytest.fixture
def conditions(tmp_path):
    """Return conditions that every registered world can be made from."""
    path = tmp_path / "rounds.csv"
    path.write_text("1,0,1,1\n" * 20)
    return Conditions(num_clients=4, seeds=[5, 6], file=path)


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_yields_one_row_per_seed_and_a_rate_per_client(name, conditions, take):
    world = make_world(name, conditions)
    assert take(world.rows, 20).shape == (20, 2, 4)
    assert world.success_rates.shape == (4,)
    assert ((world.success_rates >= 0) & (world.success_rates <= 1)).all()


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_conditions_make_the_same_world(name, conditions, take):
    first = take(make_world(name, conditions).rows, 20)
    second = take(make_world(name, conditions).rows, 20)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_says_by_its_dtype_whether_it_has_seconds(name, conditions):
    world = make_world(name, conditions)
    assert (next(world.rows).dtype != np.bool_) == world.has_seconds


def test_an_unknown_world_gets_the_nearest_name():
    with pytest.raises(ValueError, match=r"world must be one of .* did you mean 'bernoulli'"):
        make_world("bernouli", Conditions(4, [0]))
