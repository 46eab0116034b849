import numpy as np
import pytest

from fedcohort.data import label_counts


def test_label_counts_are_counted_by_hand():
    parts = [np.array([0, 1, 2]), np.array([], np.int64), np.array([4])]
    assert label_counts([0, 2, 2, 1, 1], parts, 4).tolist() == [
        [1, 0, 2, 0],
        [0, 0, 0, 0],
        [0, 1, 0, 0],
    ]
    assert label_counts([0], [], 2).shape == (0, 2)
    with pytest.raises(
        ValueError, match="labels must be labels between 0 and 1, got 2 at position 1"
    ):
        label_counts([0, 2], parts, 2)
