import sys

import numpy as np
import pytest

from fedcohort.data import load


def test_the_digits_are_real_whole_and_scaled():
    data = load("digits", download=False)
    assert (data.x.shape, data.x.dtype, data.test_x) == ((1797, 1, 8, 8), np.float32, None)
    assert (data.x.min(), data.x.max()) == (-1, 1)
    assert np.bincount(data.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match=r"pip install 'fedcohort\[learning\]'"):
        load("digits")
