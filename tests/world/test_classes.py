import numpy as np
import pytest

from fedcohort.world.classes import PAPER_RATES, class_of, class_rates


def test_classes_are_blocks_in_order_of_id_the_earlier_ones_larger():
    assert class_of(8).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert class_of(10).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert class_of(5, 2).tolist() == [0, 0, 0, 1, 1]
    assert class_of(1, 1).tolist() == [0]


def test_the_papers_rates_are_four_equal_classes():
    rates = class_rates(100)
    assert rates[[0, 24]].tolist() == [0.1, 0.1]
    assert rates[[25, 49]].tolist() == [0.3, 0.3]
    assert rates[[50, 74]].tolist() == [0.6, 0.6]
    assert rates[[75, 99]].tolist() == [0.9, 0.9]
    assert PAPER_RATES == (0.1, 0.3, 0.6, 0.9)
    assert class_rates(4, [0.5, 1.0]).tolist() == [0.5, 0.5, 1.0, 1.0]
    assert class_rates(3, 0.2).tolist() == [0.2, 0.2, 0.2]


@pytest.mark.parametrize(
    ("num_clients", "num_classes", "message"),
    [
        (3, 4, "num_clients must be a whole number at least 4, got 3"),
        (3, 0, "num_classes must be a whole number at least 1, got 0"),
    ],
)
def test_fewer_clients_than_classes_are_refused(num_clients, num_classes, message):
    with pytest.raises(ValueError, match=message):
        class_of(num_clients, num_classes)


@pytest.mark.parametrize("bad", [1.5, np.nan])
def test_bad_rates_are_named_with_bound_and_value(bad):
    message = rf"rates must be between 0\.0 and 1\.0, got {bad} at position 1"
    with pytest.raises(ValueError, match=message):
        class_rates(4, [0.5, bad])
