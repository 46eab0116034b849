"""Models in two forms: Flower's records of bytes, and NumPy arrays by name."""

from io import BytesIO
from math import prod, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord

from fedcohort.flower.text import printable

Model = dict[str, npt.NDArray[Any]]
LONGEST_HEADER = 1000  # bytes; NumPy writes 128 for an array with few axes
BLOCK = 2**16  # numbers that are compared at once


def model_from_record(record: ArrayRecord) -> Model:
    """Return the arrays of a record by name, for reading only."""
    return {name: read_array(array) for name, array in record.items()}


def record_from_model(model: Model) -> ArrayRecord:
    """Return a model as Flower sends it."""
    return ArrayRecord({name: Array(array) for name, array in model.items()})


class ArrayHeader(NamedTuple):
    """What the header of a serialised array says.

    Attributes:
        dtype: Type of the numbers.
        shape: Size along each axis.
        order: "C" if the last axis varies fastest, "F" if the first does.
        length: Bytes before the numbers.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    length: int

    @property
    def num_bytes(self) -> int:
        """Number of bytes that header and numbers take."""
        return self.length + prod(self.shape) * self.dtype.itemsize


def read_array(array: Array) -> npt.NDArray[Any]:
    """Return an array as a view of the bytes that Flower holds.

    `Array.numpy` would copy them, and for large models that copy is half of the work.

    Raises:
        ValueError: If the bytes are not exactly one serialised NumPy array of plain numbers.
    """
    header = read_header(array)
    if len(array.data) != header.num_bytes:
        raise ValueError(f"it must take {header.num_bytes} bytes, got {len(array.data)}")
    values = np.frombuffer(array.data, header.dtype, offset=header.length)
    return values.reshape(header.shape, order=header.order)


def read_header(array: Array) -> ArrayHeader:
    """Return type and shape of an array without reading its numbers.

    Raises:
        ValueError: If it is no array of plain numbers, or has a negative dimension.
    """
    if array.stype != "numpy.ndarray":
        raise ValueError(f"it is a {printable(array.stype, 50)}, not a numpy.ndarray")
    if not array.data.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError("it is not one array")

    file = BytesIO(array.data[:LONGEST_HEADER])
    version = np.lib.format.read_magic(file)
    if version != (1, 0):  # others are for fields with long names
        raise ValueError(f"its header has version {version[0]}.{version[1]}, not 1.0")
    shape, is_fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("it holds objects")
    if not np.issubdtype(dtype, np.number) and dtype != np.bool_:
        raise ValueError("it does not hold plain numbers")
    if min(shape, default=0) < 0:
        raise ValueError(f"it has a dimension of {min(shape)}")
    return ArrayHeader(
        dtype=dtype,
        shape=tuple(map(int, shape)),
        order="F" if is_fortran_order else "C",
        length=file.tell(),
    )


def is_finite(values: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are finite.

    For floats the minimum and the maximum decide, since a NaN makes both NaN. This needs no
    memory, unlike `np.isfinite` of the whole array.
    """
    if values.size == 0 or not np.issubdtype(values.dtype, np.floating):
        return bool(np.isfinite(values).all())
    return bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def distance(model: Model, other: Model, *, counts_integers: bool = True) -> float:
    """Return the Euclidean distance of two models, in double precision.

    Args:
        model: A model.
        other: A model with the same arrays.
        counts_integers: Whether arrays of whole numbers count, too.

    Returns:
        The distance, infinite if it is too large for a float.
    """
    squares = 0.0
    with np.errstate(over="ignore"):
        for name in model:
            if counts_integers or np.issubdtype(model[name].dtype, np.inexact):
                squares += _squared_distance(model[name], other[name])
    return sqrt(squares)


def _squared_distance(values: npt.NDArray[Any], others: npt.NDArray[Any]) -> float:
    """Return the sum of squared differences, block by block to need little memory."""
    exact = np.result_type(values.dtype, np.float64)
    flat = values.reshape(-1, order="A")
    other = others.reshape(-1) if values.flags.c_contiguous else others.reshape(-1, order="F")
    squares = 0.0
    for start in range(0, flat.size, BLOCK):
        block = slice(start, start + BLOCK)
        difference = np.abs(flat[block].astype(exact) - other[block].astype(exact))
        squares += float(np.square(difference).sum(dtype=np.float64))
    return squares


def cast_model(model: Model, sent: Model) -> Model:
    """Return a model in the types of the model sent.

    Strategies average in float64, and clients must get back the types that they returned.
    """
    return {name: cast_array(sent[name].dtype, array) for name, array in model.items()}


def cast_array(dtype: npt.DTypeLike, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values in another type; for integers they are rounded.

    Values that are not finite have no integer form and are returned as they are.

    Raises:
        ValueError: If a value is too large for the integer type.
    """
    target = np.dtype(dtype)
    if values.dtype == target or np.issubdtype(target, np.inexact):
        return values.astype(target, copy=False)
    if not np.isfinite(values).all():
        return values
    rounded = np.asarray(np.rint(values))
    if np.issubdtype(target, np.integer) and rounded.size:
        bounds = np.iinfo(target)
        # As floats, since the largest int64 is no float: 2**63 would slip through.
        if rounded.min() < float(bounds.min) or rounded.max() >= float(bounds.max) + 1:
            raise ValueError(f"numbers up to {np.abs(rounded).max():g} do not fit into {target}")
    return rounded.astype(target)
