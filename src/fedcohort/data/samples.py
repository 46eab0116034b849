"""Checks of samples and labels that name the array, the bound and the first bad value."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints

Array = npt.NDArray[Any]
MAX_LABEL = int(np.iinfo(np.int64).max)


def check_samples(name: str, values: npt.ArrayLike) -> Array:
    """Return images [N, C, H, W] as uint8 or float32, or features [N, F] as float32.

    Raises:
        ValueError: If the array is empty, has another shape or type, or holds nan or infinity.
    """
    x = np.asarray(values)
    if x.ndim not in (2, 4) or x.size == 0:
        message = (
            f"{name} must be images [N, C, H, W] or features [N, F], not empty, got shape {x.shape}"
        )
        if x.ndim == 3:
            message += "; add the channel axis with x[:, None]"
        raise ValueError(message)
    if x.dtype == np.uint8 and x.ndim == 4:
        return x
    if x.dtype.kind != "f":
        sizes = sample_shape(x)
        raise ValueError(f"{name} must be uint8 images or floats, got {x.dtype} [N, {sizes}]")

    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and are refused below
        x = x.astype(np.float32, copy=False)
    if not np.isfinite(x).all():
        position = np.argwhere(~np.isfinite(x))[0]
        value = x[tuple(position)]
        raise ValueError(f"{name} must be finite, got {value} in sample {position[0]}")
    return x


def check_labels(name: str, values: npt.ArrayLike, low: int = 0, high: int = MAX_LABEL) -> Ints:
    """Return labels as int64 [N].

    Raises:
        ValueError: If they are no whole numbers, or one lies outside the bounds.
    """
    labels = np.asarray(values)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be whole numbers of shape [N], got {labels.dtype} of shape {labels.shape}"
        )
    is_bad = (labels < low) | (labels > high)
    if is_bad.any():
        position = int(is_bad.argmax())
        bound = f"between {low} and {high}"
        if low == 0 and labels[position] < 0:
            bound = "at least 0"  # whatever the highest label is
        raise ValueError(
            f"{name} must be labels {bound}, got {labels[position]} at position {position}"
        )
    return labels.astype(np.int64, copy=False)


def sample_shape(x: Array) -> str:
    """Return the shape of one sample in words, such as `3, 32, 32`."""
    return ", ".join(str(size) for size in x.shape[1:])
