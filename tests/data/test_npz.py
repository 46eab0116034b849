import numpy as np
import pytest

from fedcohort.data import Dataset

IMAGES = np.arange(4 * 3 * 2 * 2, dtype=np.uint8).reshape(4, 3, 2, 2)
LABELS = np.array([0, 1, 2, 1])


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
            {"x": IMAGES, "y": np.array([0, -1, 0, 0])},
            "bad.npz: y of bad must be labels at least 0, got -1 at position 1",
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
    with pytest.raises(
        ValueError, match=r"dataset must be a file, got .*none\.npz, which does not"
    ):
        Dataset.from_npz(tmp_path / "none.npz")
    foreign = tmp_path / "foreign.npz"
    for content in (b"", b"some words\n"):
        foreign.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"an \.npz archive, got .*foreign\.npz, which is none"
        ):
            Dataset.from_npz(foreign)
    path = tmp_path / "cut.npz"
    np.savez(path, x=IMAGES, y=LABELS)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"cut\.npz cannot be read"):
        Dataset.from_npz(path)
    torn = tmp_path / "torn.npz"
    np.savez(torn, x=IMAGES, y=LABELS)
    torn.write_bytes(torn.read_bytes().replace(b"PK\x01\x02", b"PK\x01\x02\xff\xff\xff\xff"))
    with pytest.raises(ValueError, match=r"torn\.npz cannot be read"):
        Dataset.from_npz(torn)
    with open(tmp_path / "single.npz", "wb") as file:
        np.save(file, IMAGES)
    with pytest.raises(ValueError, match="got a single array"):
        Dataset.from_npz(tmp_path / "single.npz")
