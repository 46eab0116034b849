"""Scalings of grey values 0..255 for a network. The paper does not say which it uses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def symmetric(x: Array, train: Array) -> Array:
    """Return values in [-1, 1]: x / 127.5 - 1."""
    scaled = x.astype(np.float32)
    scaled /= 127.5
    scaled -= 1
    return scaled


def unit(x: Array, train: Array) -> Array:
    """Return values in [0, 1]: x / 255."""
    scaled = x.astype(np.float32)
    scaled /= 255
    return scaled


def standard(x: Array, train: Array) -> Array:
    """Return values of mean 0 and standard deviation 1 in each channel of the training images.

    A constant channel becomes 0.
    """
    axes = (0, 2, 3)
    mean = np.mean(train, axis=axes, keepdims=True, dtype=np.float64)
    deviation = np.std(train, axis=axes, keepdims=True, dtype=np.float64)
    scaled = x.astype(np.float32)
    scaled -= mean.astype(np.float32)
    scaled /= np.where(deviation > 0, deviation, 1).astype(np.float32)
    return scaled


SCALINGS: dict[str, Callable[[Array, Array], Array]] = {
    "symmetric": symmetric,
    "unit": unit,
    "standard": standard,
}
