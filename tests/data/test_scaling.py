import tracemalloc

import numpy as np
import pytest

from fedcohort.data import Dataset
from fedcohort.data.scaling import standard


def test_scaled_maps_bytes_to_minus_one_and_one_in_both_parts_and_leaves_floats_alone():
    x = np.array([0, 255, 51], np.uint8).reshape(3, 1, 1, 1)
    scaled = Dataset("mine", x, [0, 0, 0], 1, x, [0, 0, 0]).scaled()
    np.testing.assert_allclose(scaled.x.ravel(), [-1, 1, -0.6], rtol=1e-6)  # 51 / 127.5 - 1
    np.testing.assert_array_equal(scaled.x, scaled.test_x)
    assert scaled.x.dtype == np.float32
    floats = Dataset("mine", np.full((1, 2), 7.0), [0], 1)
    assert floats.scaled() is floats
    assert floats.x.dtype == np.float32


def test_images_are_scaled_as_asked_and_a_test_set_like_the_training_set():
    x = np.array([[0, 255], [51, 102]], np.uint8).reshape(2, 1, 1, 2)
    data = Dataset("x", x, np.array([0, 1]), 2, x[:1], np.array([0]))
    np.testing.assert_allclose(data.scaled("unit").x.ravel(), [0, 1, 0.2, 0.4], rtol=1e-6)
    mean, sd = 102, np.sqrt((102**2 + 153**2 + 51**2 + 0) / 4)
    np.testing.assert_allclose(
        data.scaled("standard").x.ravel(), (x.ravel().astype(float) - mean) / sd, rtol=1e-6
    )
    np.testing.assert_array_equal(data.scaled("standard").test_x, data.scaled("standard").x[:1])
    assert (Dataset("flat", x * 0, np.array([0, 1]), 2).scaled("standard").x == 0).all()
    with pytest.raises(
        ValueError, match="scaling must be one of symmetric, unit, standard, got 'none'"
    ):
        data.scaled("none")


def test_channels_of_many_images_are_scaled_in_little_memory():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (1203, 3, 20, 20), dtype=np.uint8)
    images[:, 1] //= 3
    tracemalloc.start()
    scaled = standard(images[:1], images)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 2 * images.nbytes
    deviation = images.std(axis=(0, 2, 3), keepdims=True)
    expected = (images[:1] - images.mean(axis=(0, 2, 3), keepdims=True)) / deviation
    np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-6)
