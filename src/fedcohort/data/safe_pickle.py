"""Read a pickled dictionary of lists and byte arrays without running any code in it.

A pickle names the functions to call. Here each name is looked up in a table of stand-ins, which
holds none of the real functions, not even NumPy's.
"""

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.checks import one_line


def unpickle(data: bytes, name: str) -> Any:
    """Return the pickled object, written by Python 2 or 3.

    Args:
        data: The pickle.
        name: Name of the file, for messages.

    Returns:
        The object. Arrays in a dictionary are uint8.

    Raises:
        ValueError: If the pickle is damaged, or names a function that a uint8 array does not need.
            Such a function is never called.
    """
    try:
        value = _Unpickler(io.BytesIO(data), encoding="bytes").load()
        return _with_arrays(value)
    except Exception as error:  # a damaged pickle can raise anything
        reason = one_line(error)
        raise ValueError(f"{name} cannot be read as a CIFAR-10 batch: {reason}") from None


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module, name) not in STAND_INS:
            raise ValueError(f"it asks for {module}.{name}, which no batch needs; nothing was run")
        return STAND_INS[module, name]


class _ByteArray:
    """Stands in for an array while its shape, type and bytes are read."""

    def __init__(self, *_: Any) -> None:
        self.array: npt.NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, raw = state
        if not isinstance(dtype, _Dtype) or dtype.code not in ("u1", b"u1"):
            raise ValueError("its arrays must be of type u1")
        values = np.frombuffer(raw, np.uint8)
        if is_fortran:
            self.array = values.reshape(shape, order="F")
        else:
            self.array = values.reshape(shape)


class _Dtype:
    """Stands in for `numpy.dtype` and remembers only its code."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Ignore byte order and alignment, which single bytes do not have."""


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes that Python 3 wrote as text, as the older pickle protocols do."""
    return text.encode("latin1")


def _with_arrays(value: Any) -> Any:
    """Replace the stand-ins in a dictionary by their arrays."""
    if not isinstance(value, dict):
        return value
    for key, item in value.items():
        if isinstance(item, _ByteArray):
            value[key] = item.array
    return value


STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _ByteArray,
    ("numpy._core.multiarray", "_reconstruct"): _ByteArray,
    ("numpy", "ndarray"): _ByteArray,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}
