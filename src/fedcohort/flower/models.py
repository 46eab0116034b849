"""Models in two forms: Flower's records of bytes, and NumPy arrays by name."""

from io import BytesIO
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord

Model = dict[str, npt.NDArray[Any]]


def model_from_record(record: ArrayRecord) -> Model:
    """Return the arrays of a record by name, for reading only."""
    return {name: read_array(array) for name, array in record.items()}


def record_from_model(model: Model) -> ArrayRecord:
    """Return a model as Flower sends it."""
    return ArrayRecord({name: Array(array) for name, array in model.items()})


def read_array(array: Array) -> npt.NDArray[Any]:
    """Return an array as a view of the bytes that Flower holds.

    `Array.numpy` would copy them, and for large models that copy is half of the work.

    Raises:
        ValueError: If the bytes are not one serialised NumPy array of plain numbers.
    """
    if array.stype != "numpy.ndarray":
        raise ValueError(f"it is a {array.stype}, not a numpy.ndarray")
    if not array.data.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError("it is not one array")

    file = BytesIO(array.data)
    if np.lib.format.read_magic(file) != (1, 0):
        return array.numpy()  # NumPy writes another header version when field names are long

    shape, is_fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("it holds objects")
    values = np.frombuffer(array.data, dtype, count=prod(shape), offset=file.tell())
    if is_fortran_order:
        return values.reshape(shape, order="F")
    return values.reshape(shape)


def is_finite(values: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are finite.

    For floats the minimum and the maximum decide, since a NaN makes both NaN. This needs no
    memory, unlike `np.isfinite` of the whole array.
    """
    if values.size == 0 or not np.issubdtype(values.dtype, np.floating):
        return bool(np.isfinite(values).all())
    return bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def distance(model: Model, other: Model) -> float:
    """Return the Euclidean distance of two models over all arrays, in double precision."""
    squares = []
    for name in model:
        difference = model[name].astype(np.float64) - other[name].astype(np.float64)
        squares.append(np.square(difference).sum())
    return float(np.sqrt(np.sum(squares)))


def cast_model(model: Model, sent: Model) -> Model:
    """Return a model in the types of the model sent.

    Strategies average in float64, and clients must get back the types that they returned.
    """
    return {name: cast_array(sent[name].dtype, array) for name, array in model.items()}


def cast_array(dtype: npt.DTypeLike, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values in another type; for integers they are rounded.

    Values that are not finite have no integer form and are returned as they are.
    """
    if values.dtype == dtype or np.issubdtype(dtype, np.inexact):
        return values.astype(dtype, copy=False)
    if not np.isfinite(values).all():
        return values
    return np.asarray(np.rint(values)).astype(dtype)
