"""Data sizes: how many training samples each client has, for schemes that weigh by them."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.checks import MAX_COUNT, check_array

SIZES = (1.0, float(MAX_COUNT))  # smallest and largest number of samples


def check_data_sizes(data_sizes: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return the sizes of all runs [..., K] as a copy.

    Args:
        data_sizes: Number of samples of each client, [K] or [..., K]; at least 1.
        shape: The shape [..., K].

    Raises:
        ValueError: If a size is out of bounds, or the shape is another one.
    """
    given_shape = shape
    if np.ndim(data_sizes) == 1:
        given_shape = shape[-1:]
    sizes = check_array("data_sizes", data_sizes, given_shape, *SIZES)
    return np.array(np.broadcast_to(sizes, shape), order="C")
