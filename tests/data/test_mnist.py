import numpy as np
import pytest
from published import idx, idx_files, put, zipped

from fedcohort.data import load
from fedcohort.data.directories import SYSTEM


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST/raw"), ("fashion-mnist", "fashion-mnist")]
)
def test_mnist_and_its_kin_are_read_as_published(tmp_path, name, folder, packed):
    files, (x, y, test_x, test_y) = idx_files("", "t10k")
    put(tmp_path / folder, files, packed)
    for data_dir in (tmp_path, tmp_path / folder):  # the directory above, or the folder itself
        data = load(name, data_dir, download=False)
        assert (data.name, data.num_classes, data.x.shape) == (name, 10, (12, 1, 28, 28))
        np.testing.assert_array_equal(data.x[:, 0], x)
        np.testing.assert_array_equal(data.y, y)
        np.testing.assert_array_equal(data.test_x[:, 0], test_x)
        np.testing.assert_array_equal(data.test_y, test_y)


def test_mnist_is_not_taken_for_fashion_mnist_though_the_files_bear_the_same_names(tmp_path):
    put(tmp_path, idx_files("", "t10k")[0])
    put(tmp_path / "mnist", idx_files("", "t10k")[0])
    with pytest.raises(ValueError, match="fashion-mnist is in none of the data directories"):
        load("fashion-mnist", tmp_path, download=False)


def test_emnist_letters_are_turned_upright_and_counted_from_zero(tmp_path):
    files, (x, y, test_x, test_y) = idx_files("emnist-letters-", "test", low=1, high=26)
    put(tmp_path, files, gzipped=True)
    data = load("emnist-letters", tmp_path, download=False)
    assert data.num_classes == 26
    # transposed once more, the images are as published
    np.testing.assert_array_equal(data.x[:, 0].transpose(0, 2, 1), x)
    np.testing.assert_array_equal(data.test_x[3, 0, 5, 20], test_x[3, 20, 5])
    np.testing.assert_array_equal(data.y + 1, y)
    np.testing.assert_array_equal(data.test_y + 1, test_y)


@pytest.mark.parametrize("archive", ["gzip.zip", "emnist-gzip.zip"])
def test_emnist_letters_are_read_from_the_official_archive_and_nothing_is_unpacked(
    tmp_path, archive
):
    files, (_, y, _, _) = idx_files("emnist-letters-", "test", low=1, high=26)
    zipped(
        tmp_path / archive,
        {**files, "emnist-digits-train-images-idx3-ubyte": b"another set"},
        "gzip",
    )
    np.testing.assert_array_equal(load("emnist-letters", tmp_path, download=False).y + 1, y)
    assert [path.name for path in tmp_path.iterdir()] == [archive]


def test_labels_out_of_range_are_refused_with_file_and_label(tmp_path):
    files, _ = idx_files("emnist-letters-", "test", low=1, high=26)
    put(tmp_path, files | {"emnist-letters-train-labels-idx1-ubyte": idx([1] * 11 + [0])})
    with pytest.raises(
        ValueError,
        match="train-labels-idx1-ubyte must be labels between 1 and 26, got 0 at position 11",
    ):
        load("emnist-letters", tmp_path, download=False)
    put(tmp_path, files | {"emnist-letters-test-labels-idx1-ubyte": idx([27] * 6)})
    with pytest.raises(
        ValueError,
        match=r"in .* cannot be used: emnist-letters-test-labels-idx1-ubyte must be .* got 27",
    ):
        load("emnist-letters", tmp_path, download=False)


def test_images_and_labels_of_different_number_are_refused(tmp_path):
    files, _ = idx_files("", "t10k")
    put(tmp_path / "mnist", files | {"train-labels-idx1-ubyte": idx([1, 2])})
    with pytest.raises(
        ValueError,
        match=r"mnist in .* cannot be used: x and y of mnist must be equally long, got 12 and 2",
    ):
        load("mnist", tmp_path, download=False)


@pytest.mark.parametrize("spoil", [lambda data: data[: len(data) // 2], lambda data: b"no archive"])
def test_a_spoilt_archive_is_refused_and_left_alone(tmp_path, spoil):
    zipped(tmp_path / "gzip.zip", idx_files("emnist-letters-", "test", low=1, high=26)[0], "gzip")
    spoilt = spoil((tmp_path / "gzip.zip").read_bytes())
    (tmp_path / "gzip.zip").write_bytes(spoilt)
    with pytest.raises(ValueError, match=r"gzip\.zip is damaged or truncated"):
        load("emnist-letters", tmp_path, download=False)
    assert (tmp_path / "gzip.zip").read_bytes() == spoilt


def test_an_archive_without_the_letters_says_what_it_lacks(tmp_path):
    zipped(tmp_path / "gzip.zip", {"emnist-digits-train-images-idx3-ubyte": b""}, "gzip")
    with pytest.raises(ValueError, match="lacks emnist-letters-train-images-idx3-ubyte"):
        load("emnist-letters", tmp_path, download=False)


@pytest.mark.skipif(
    not (SYSTEM / "fashion-mnist").is_dir(),
    reason="REAL FASHION-MNIST NOT TESTED: "
    "apt-get install dataset-fashion-mnist puts it on this machine",
)
def test_the_real_fashion_mnist_of_debian_is_found_and_whole(monkeypatch):
    monkeypatch.setattr("fedcohort.data.directories.SYSTEM", SYSTEM)
    data = load("fashion-mnist", download=False)
    assert (data.x.shape, data.test_x.shape) == ((60000, 1, 28, 28), (10000, 1, 28, 28))
    assert np.bincount(data.y).tolist() == [6000] * 10
    assert np.bincount(data.test_y).tolist() == [1000] * 10
    assert data.y[:5].tolist() == [9, 0, 0, 3, 0]  # an ankle boot comes first
    assert round(float(data.x.mean()) / 255, 4) == 0.2860  # the mean that everybody normalises by
