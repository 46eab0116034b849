import numpy as np
import pytest

from fedcohort.rng import stream
from fedcohort.world.labels import label_rates
from fedcohort.world.registry import Conditions, make_world


def test_rates_follow_the_primary_label():
    counts = np.array([[9, 1, 0, 0, 0], [0, 2, 8, 0, 0], [3, 0, 0, 0, 7]])
    np.testing.assert_allclose(label_rates(counts, 0.1, 0.9), [0.1, 0.5, 0.9], rtol=1e-15)
    np.testing.assert_allclose(label_rates(counts, 0.8, 0.2), [0.8, 0.5, 0.2], rtol=1e-15)


def test_of_equal_labels_the_lowest_counts_and_no_label_is_label_0():
    counts = np.array([[0, 4, 4], [0, 0, 0]])
    np.testing.assert_allclose(label_rates(counts, 0.2, 1.0), [0.6, 0.2], rtol=1e-15)
    assert label_rates(np.array([[3]]), 0.2, 1.0).tolist() == [0.2]  # a single label


def test_runs_with_other_labels_have_other_rates_and_the_same_coins(take):
    counts = np.array([[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]])
    conditions = Conditions(
        num_clients=2, seeds=[3, 3], label_counts=counts, options={"p_min": 0.0, "p_max": 1.0}
    )
    world = make_world("labels", conditions)
    assert world.success_rates.tolist() == [[0.0, 0.5], [1.0, 0.5]]
    rows = take(world.rows, 50)
    draws = stream(3, "world").random((50, 2))
    np.testing.assert_array_equal(rows, draws[:, None] < world.success_rates)


@pytest.mark.parametrize("options", [{"p_min": -0.1}, {"p_max": 1.1}])
def test_rates_out_of_bounds_are_refused(options):
    counts = np.ones((1, 2, 3), dtype=int)
    (name,) = options
    with pytest.raises(ValueError, match=rf"world option {name} must be between 0\.0 and 1\.0"):
        make_world("labels", Conditions(2, [0], label_counts=counts, options=options))
