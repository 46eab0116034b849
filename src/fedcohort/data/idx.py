"""The IDX format of MNIST and its kin: two zero bytes, a type, the number of axes, their sizes, then the bytes."""

import gzip
import zlib
from math import prod

import numpy as np
import numpy.typing as npt

UNSIGNED_BYTES = 8
GZIP = b"\x1f\x8b"


def plain(data: bytes, name: str) -> bytes:
    """Return what a file holds, gzipped or not."""
    if data[:2] != GZIP:
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is damaged or truncated: {error}") from None


def parse_idx(data: bytes, name: str, axes: int) -> npt.NDArray[np.uint8]:
    """Return the unsigned bytes of an IDX file, plain or gzipped, as an array; too few bytes or too many are refused."""
    data = plain(data, name)
    start = 4 + 4 * axes
    if data[:4] != bytes([0, 0, UNSIGNED_BYTES, axes]) or len(data) < start:
        raise ValueError(
            f"{name} must start like an IDX file of unsigned bytes with {axes} axes, got {data[:4].hex(' ')!r}"
        )
    shape = tuple(int(size) for size in np.frombuffer(data, ">u4", axes, 4))
    if len(data) - start != prod(shape):
        what = "truncated" if len(data) - start < prod(shape) else "followed by something else"
        raise ValueError(
            f"{name} is {what}: its header {list(shape)} needs {prod(shape)} bytes, got {len(data) - start}"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
