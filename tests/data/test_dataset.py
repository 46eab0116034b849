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


def test_scaled_maps_bytes_to_minus_one_and_one_in_both_parts_and_leaves_floats_alone():
    x = np.array([0, 255, 51], np.uint8).reshape(3, 1, 1, 1)
    scaled = Dataset("mine", x, [0, 0, 0], 1, x, [0, 0, 0]).scaled()
    np.testing.assert_allclose(scaled.x.ravel(), [-1, 1, -0.6], rtol=1e-6)  # 51 / 127.5 - 1
    np.testing.assert_array_equal(scaled.x, scaled.test_x)
    assert scaled.x.dtype == np.float32
    floats = Dataset("mine", np.full((1, 2), 7.0), [0], 1)
    assert floats.scaled() is floats
    assert floats.x.dtype == np.float32


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


def test_an_npz_gives_back_what_was_saved(tmp_path):
    path = tmp_path / "phones.npz"
    owners = np.array(["ann", "bob", "ann", "eve"])
    np.savez(path, x=IMAGES, y=LABELS, test_x=IMAGES[:1], test_y=np.array([3]), clients=owners)
    data = Dataset.from_npz(path)
    assert (data.name, data.num_classes) == ("phones", 4)  # the highest label is in the test set
    np.testing.assert_array_equal(data.x, IMAGES)
    np.testing.assert_array_equal(data.clients, owners)
    np.savez(path, x=IMAGES, y=LABELS, num_classes=26)
    assert Dataset.from_npz(path).num_classes == 26


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": LABELS}, "must have the key 'x', got y"),
        ({"x": IMAGES}, "must have the key 'y', got x"),
        ({}, "must have the key 'x', got no key at all"),
        (
            {"x": IMAGES, "y": LABELS.astype(object)},
            "bad.npz cannot be read: the key 'y': Object arrays",
        ),
        (
            {"x": IMAGES, "y": LABELS, "num_classes": np.array([3, 3])},
            "bad.npz: num_classes must be one number, got 2",
        ),
        (
            {"x": IMAGES, "y": np.full(LABELS.shape, 2**63, np.uint64)},
            f"bad.npz: num_classes must be a whole number between 1 and 1000000, got {2**63 + 1}",
        ),
        (
            {"x": IMAGES, "y": LABELS, "num_classes": 0},
            "bad.npz: num_classes must be a whole number between 1 and 1000000, got 0",
        ),
        (
            {"x": IMAGES, "y": LABELS, "num_classes": 3.9},
            "bad.npz: num_classes must be a whole number between 1 and 1000000, got 3.9",
        ),
        (
            {"x": IMAGES, "y": LABELS, "num_classes": 2},
            "bad.npz: y of bad must be labels between 0 and 1, got 2 at position 2",
        ),
    ],
)
def test_a_bad_npz_is_refused_with_file_and_key(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message):
        Dataset.from_npz(path)


def test_a_missing_a_truncated_and_a_foreign_file_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"none\.npz cannot be read"):
        Dataset.from_npz(tmp_path / "none.npz")
    path = tmp_path / "cut.npz"
    np.savez(path, x=IMAGES, y=LABELS)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"cut\.npz cannot be read"):
        Dataset.from_npz(path)
    with open(tmp_path / "single.npz", "wb") as file:
        np.save(file, IMAGES)
    with pytest.raises(ValueError, match="got a single array"):
        Dataset.from_npz(tmp_path / "single.npz")


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
