import numpy as np
import pytest

from fedcohort.selection.availability import smallest
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Outcome


def test_a_mask_of_whole_numbers_is_refused_rather_than_read_as_ids():
    with pytest.raises(
        ValueError,
        match="available must hold distinct client ids, got 1 twice; a mask must be of bools",
    ):
        E3CS(6, 2, rng=0).select(0, np.array([1, 1, 0, 1, 1, 1]))


def test_a_mask_may_be_used_again_before_the_update():
    learned = []
    for reused in (False, True):
        selector = E3CS(6, 2, rng=0, update="robust")
        mask = np.array([True] * 5 + [False])
        cohort = selector.select(0, mask)
        if reused:
            mask[:] = False
        selector.update(Outcome(cohort, np.array([1.0, 0.0])))
        learned.append(selector.log_weights)
    np.testing.assert_array_equal(*learned)


def test_the_smallest_keys_come_in_order_and_only_from_those_present():
    keys = np.array([[0.3, 0.1, 0.2, 0.0], [4.0, 3.0, 2.0, 1.0]])
    present = np.array([[True, True, True, False], [True, False, True, True]])
    assert smallest(keys, 2, None).tolist() == [[3, 1], [3, 2]]
    assert smallest(keys, 2, present).tolist() == [[1, 2], [3, 2]]
    assert smallest(keys, 4, None).tolist() == [[3, 1, 2, 0], [3, 2, 1, 0]]
    assert smallest(keys, 0, present).shape == (2, 0)
