"""Classes of clients by how often they answer."""

import numpy as np
import pytest

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.reliability import reliability


def classes_of(rates):
    """Return the classes of clients in a world that has none of its own."""
    config = ComparisonConfig(clients=len(rates), cohort=1, world="labels")
    return reliability(config, np.array(rates)).classes.tolist()


def test_quarters_hold_equally_many_clients_the_least_reliable_first():
    rates = np.linspace(0.05, 0.95, 20)
    quarters = np.repeat([0, 1, 2, 3], 5)
    order = np.random.default_rng(0).permutation(20)
    assert classes_of(rates[order]) == quarters[order].tolist()


@pytest.mark.parametrize(
    ("rates", "classes"),
    [
        ([0.5, 0.5, 0.5, 0.5], [0, 0, 0, 0]),
        ([0.2, 0.9, 0.2, 0.9, 0.2, 0.9], [0, 1, 0, 1, 0, 1]),
        ([0.7], [0]),
        ([0.7, 0.3], [1, 0]),
    ],
)
def test_clients_with_equal_rates_are_in_one_class_and_no_class_is_empty(rates, classes):
    assert classes_of(rates) == classes


def test_a_world_with_classes_keeps_them_and_their_rates():
    config = ComparisonConfig(clients=5, cohort=2, rates=(0.9, 0.2))
    found = reliability(config, np.array([0.9, 0.9, 0.9, 0.2, 0.2]))
    assert found.classes.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(found.rates, [0.9, 0.2])


def test_a_recorded_world_has_the_quarters_of_its_clients_with_their_mean_rates():
    config = ComparisonConfig(clients=8, cohort=2, world="recorded", world_file="world.npy")
    rates = np.array([0.8, 0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4])
    found = reliability(config, rates)
    assert found.classes.tolist() == [3, 0, 3, 0, 2, 1, 2, 1]
    np.testing.assert_allclose(found.rates, [0.15, 0.35, 0.55, 0.75])


def test_federations_with_other_rates_have_quarters_of_their_own():
    rates = np.array([[0.1, 0.2, 0.3, 0.4], [0.9, 0.5, 0.5, 0.5]])
    config = ComparisonConfig(clients=4, cohort=2, world="labels")
    found = reliability(config, rates)
    assert found.classes.tolist() == [[0, 1, 2, 3], [3, 0, 0, 0]]
    np.testing.assert_allclose(found.rates, [1.6 / 4, 0.2, 0.3, 1.3 / 2])
