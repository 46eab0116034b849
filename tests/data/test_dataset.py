import numpy as np
import pytest

from fedcohort.data import Dataset

IMAGES = np.arange(4 * 3 * 2 * 2, dtype=np.uint8).reshape(4, 3, 2, 2)
LABELS = np.array([0, 1, 2, 1])


def test_images_and_labels_are_kept_and_labels_become_int64():
    data = Dataset("mine", IMAGES, LABELS.astype(np.uint8), 3)
    assert data.x is IMAGES
    assert data.y.dtype == np.int64
    np.testing.assert_array_equal(data.y, LABELS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1, 3, 1]}, "y of mine must be labels between 0 and 2, got 3 at position 2"),
        ({"y": [0, -1, 2, 1]}, "got -1 at position 1"),
        ({"y": [0, 1]}, "x and y of mine must be equally long, got 4 and 2"),
        ({"y": [0.0, 1.0, 2.0, 1.0]}, "y of mine must be whole numbers"),
        ({"x": IMAGES[:, 0]}, r"add the channel axis with x\[:, None\]"),
        ({"x": IMAGES.astype(np.int32)}, "x of mine must be uint8 images or floats, got int32"),
        ({"x": IMAGES.reshape(4, 12)}, "x of mine must be uint8 images or floats"),
        (
            {"x": np.array([[1.0], [2.0], [np.nan], [0.0]])},
            "x of mine must be finite, got nan in sample 2",
        ),
        (
            {"x": np.array([[1.0], [2.0], [1e300], [0.0]])},
            "x of mine must be finite, got inf in sample 2",
        ),
        ({"x": IMAGES[:0], "y": LABELS[:0]}, "not empty"),
        ({"num_classes": 0}, "num_classes must be a whole number between 1 and 1000000, got 0"),
        ({"test_x": IMAGES}, "test_x and test_y of mine must come together, got no test_y"),
        (
            {"test_x": IMAGES[:, :1], "test_y": LABELS},
            r"test_x of mine must be like x, uint8 \[M, 3, 2, 2\], got uint8 \[M, 1",
        ),
        (
            {"test_x": IMAGES, "test_y": LABELS + 1},
            "test_y of mine must be labels between 0 and 2, got 3 at position 2",
        ),
        ({"clients": [0, 1]}, "clients of mine must be 4 whole numbers or words"),
        ({"clients": [0.5, 1.0, 2.0, 3.0]}, "clients of mine must be 4 whole numbers or words"),
    ],
)
def test_bad_arrays_are_refused_by_name_bound_and_value(change, message):
    with pytest.raises(ValueError, match=message):
        Dataset(**{"name": "mine", "x": IMAGES, "y": LABELS, "num_classes": 3, **change})


def test_equal_data_have_equal_digests_and_every_change_makes_another():
    base = {"x": IMAGES, "y": LABELS, "num_classes": 3}
    owners = np.array(["ann", "bob", "ann", "eve"])
    others = [
        {"x": IMAGES[::-1]},
        {"x": IMAGES.astype(np.float32)},
        {"y": (LABELS + 1) % 3},
        {"clients": owners},
        {"clients": owners[::-1]},
        {"test_x": IMAGES[:1], "test_y": LABELS[:1]},
    ]
    digests = [Dataset("mine", **base | change).digest for change in others]
    assert (
        Dataset("mine", **base).digest
        == Dataset("another name", **base | {"x": IMAGES.copy()}).digest
    )
    assert len({Dataset("mine", **base).digest, *digests}) == 7
    assert Dataset("mine", **base | {"num_classes": 9}).digest != Dataset("mine", **base).digest
    numbers = [np.arange(4, dtype=kind) for kind in (np.int32, np.int64, np.uint8)]
    assert len({Dataset("mine", **base, clients=column).digest for column in numbers}) == 1
