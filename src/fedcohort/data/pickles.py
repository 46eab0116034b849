"""Read a pickled dictionary of lists and byte arrays without running anything that the pickle names.

Every name in the pickle is looked up in a table of stand-ins below; the real NumPy functions are not among them.
"""

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt


def unpickle(data: bytes, name: str) -> Any:
    """Return what was pickled, of Python 2 or 3; a name other than those of a uint8 array is refused before it is called."""
    try:
        return _finished(_Unpickler(io.BytesIO(data), encoding="bytes").load())
    except Exception as error:  # the instructions of a damaged pickle fail in any way whatever
        raise ValueError(
            f"{name} cannot be read as a CIFAR-10 batch: {error or type(error).__name__}"
        ) from None


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module, name) not in STAND_INS:
            raise ValueError(f"it asks for {module}.{name}, which no batch needs; nothing was run")
        return STAND_INS[module, name]


class _ByteArray:
    """Takes the place of an array while its shape, type and bytes are read."""

    def __init__(self, *_: Any) -> None:
        self.array: npt.NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, _Kind) or kind.code not in ("u1", b"u1"):
            raise ValueError("its arrays must be of type u1")
        self.array = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Kind:
    """Takes the place of `numpy.dtype`: remembers the code and no more."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Ignore byte order and alignment: single bytes have neither."""


def _encode(text: str, encoding: str) -> bytes:
    """Give back bytes that Python 3 spelt as text for the older protocols."""
    return text.encode("latin1")


def _finished(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item.array if isinstance(item, _ByteArray) else item for key, item in value.items()
        }
    return value


STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _ByteArray,
    ("numpy._core.multiarray", "_reconstruct"): _ByteArray,
    ("numpy", "ndarray"): _ByteArray,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encode,
}
