"""The dataset that needs no download: handwritten digits that come with scikit-learn."""

from importlib import import_module

import numpy as np

from fedcohort.data.dataset import Dataset


def digits() -> Dataset:
    """Return 1,797 images of 8 x 8 pixels, scaled from 0..16 to [-1, 1], without a test set."""
    try:
        bunch = import_module("sklearn.datasets").load_digits()
    except ImportError:
        raise ValueError(
            "the data set digits comes with scikit-learn: pip install 'fedcohort[learning]'"
        ) from None
    images = bunch.images[:, None].astype(np.float32) / 8 - 1
    return Dataset("digits", images, bunch.target.astype(np.int64), 10)
