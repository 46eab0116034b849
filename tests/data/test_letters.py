import numpy as np
import pytest

from fedcohort.data import DataNotFound, load


def test_letters_are_read_upright_under_their_own_name(tmp_path):
    images = np.zeros((3, 28, 28), np.uint8)
    images[1, 4, 20] = 200
    labels = np.array([0, 25, 7], np.uint8)
    np.savez(tmp_path / "nist-letters-mix.npz", x=images, y=labels, source=labels)
    data = load("nist-letters-mix", tmp_path)
    assert (data.name, data.num_classes, data.test_y) == ("nist-letters-mix", 26, None)
    assert data.x.shape == (3, 1, 28, 28)
    assert data.x[1, 0, 4, 20] == 200
    assert data.y.tolist() == [0, 25, 7]


def test_letters_that_are_nowhere_are_not_downloaded(tmp_path):
    with pytest.raises(DataNotFound, match=r"put the file nist-letters-mix\.npz with images"):
        load("nist-letters-mix", tmp_path, download=True)
