"""The IDX file format of MNIST and its relatives.

A file holds two zero bytes, a type, the number of axes, the size of each axis, then the values.
"""

from math import prod

import numpy as np
import numpy.typing as npt

from fedcohort.data.archives import decompress

UNSIGNED_BYTES = 8


def parse_idx(data: bytes, name: str, axes: int) -> npt.NDArray[np.uint8]:
    """Return the unsigned bytes of an IDX file as an array.

    Args:
        data: Content of the file, gzipped or not.
        name: Name of the file, for messages.
        axes: Number of axes that the array must have.

    Returns:
        The array, uint8.

    Raises:
        ValueError: If the header is another one, or there are too few or too many bytes.
    """
    data = decompress(data, name)
    start = 4 + 4 * axes
    if data[:4] != bytes([0, 0, UNSIGNED_BYTES, axes]) or len(data) < start:
        raise ValueError(
            f"{name} must start like an IDX file of unsigned bytes with {axes} axes, "
            f"got {data[:4].hex(' ')!r}"
        )
    sizes = np.frombuffer(data, ">u4", count=axes, offset=4)
    shape = tuple(sizes.tolist())
    needed = prod(shape)
    present = len(data) - start
    if present != needed:
        problem = "truncated" if present < needed else "followed by something else"
        raise ValueError(
            f"{name} is {problem}: its header {list(shape)} needs {needed} bytes, got {present}"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
