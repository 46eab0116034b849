"""Scalings of grey values 0..255 for a network. The paper does not say which it uses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints

Array = npt.NDArray[Any]
VALUES = np.arange(256)
BLOCK = 500  # images whose values are counted at once


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
    counts = _count_values(train)
    sizes = counts.sum(axis=1)
    mean = counts @ VALUES / sizes
    squares = (VALUES - mean[:, None]) ** 2
    deviation = np.sqrt((counts * squares).sum(axis=1) / sizes)

    scaled = x.astype(np.float32)
    scaled -= mean.astype(np.float32)[:, None, None]
    scaled /= np.where(deviation > 0, deviation, 1).astype(np.float32)[:, None, None]
    return scaled


def _count_values(images: Array) -> Ints:
    """Return how often each value 0..255 occurs in each channel, [C, 256].

    Counting needs no copy of the images in float64, which would be eight times as large.
    """
    counts = np.zeros((images.shape[1], VALUES.size), np.int64)
    for start in range(0, len(images), BLOCK):
        block = images[start : start + BLOCK]
        for channel in range(images.shape[1]):
            counts[channel] += np.bincount(block[:, channel].ravel(), minlength=VALUES.size)
    return counts


SCALINGS: dict[str, Callable[[Array, Array], Array]] = {
    "symmetric": symmetric,
    "unit": unit,
    "standard": standard,
}
