import numpy as np
import pytest

from fedcohort.arrays import pick, place, row_starts


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7)])
def test_reading_and_writing_by_ids_agree_with_numpy(shape):
    rng = np.random.default_rng(0)
    values = rng.random(shape)
    ids = np.argsort(rng.random(shape), axis=-1)[..., :4]
    np.testing.assert_array_equal(pick(values, ids), np.take_along_axis(values, ids, axis=-1))

    new = rng.random(ids.shape)
    expected = values.copy()
    np.put_along_axis(expected, ids, new, axis=-1)
    place(values, ids, new)
    np.testing.assert_array_equal(values, expected)


def test_rows_start_where_the_flattened_array_says_and_cannot_be_changed():
    assert row_starts((5,)).tolist() == [0]
    assert row_starts((2, 3, 5)).tolist() == [[[0], [5], [10]], [[15], [20], [25]]]
    with pytest.raises(ValueError, match="read-only"):
        row_starts((2, 5))[0] = 1
