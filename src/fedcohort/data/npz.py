"""A user's own dataset in a .npz file: the arrays in it, without pickle."""

from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.checks import one_line
from fedcohort.data.samples import Array
from fedcohort.files import check_exists, check_file, check_plain

STARTS = (b"PK", b"\x93NUMPY")  # of an archive, and of a single array
KEYS = ("x", "y", "test_x", "test_y", "clients", "num_classes")


def read_npz(path: Path) -> dict[str, Array]:
    """Return the arrays of a dataset by name; other names in the file are ignored.

    Raises:
        ValueError: If the file cannot be read, or has no x or no y.
    """
    check_exists("dataset", path)
    check_file(path)
    try:
        with open(path, "rb") as file:
            is_numpy = file.read(max(map(len, STARTS))).startswith(STARTS)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {one_line(error)}") from None
    if not is_numpy:  # NumPy would advise to unpickle it
        raise ValueError(f"dataset must be an .npz archive, got {path}, which is none")
    try:
        with open(path, "rb") as file:
            arrays = _read_keys(np.load(file, allow_pickle=False))
    except Exception as error:  # NumPy's reader raises many kinds for a damaged file
        raise ValueError(f"{path} cannot be read: {one_line(error)}") from None
    check_plain(path, arrays)
    for key in ("x", "y"):
        if key not in arrays:
            names = ", ".join(arrays) or "no key at all"
            raise ValueError(f"{path} must have the key {key!r}, got {names}")
    return arrays


def count_classes(arrays: dict[str, Array]) -> Any:
    """Return the number of classes that a file states, or else its highest label + 1."""
    if "num_classes" in arrays:
        stated = arrays["num_classes"]
        if stated.size != 1:
            raise ValueError(f"num_classes must be one number, got {stated.size}")
        return stated.item()

    highest = 0
    for key in ("y", "test_y"):
        labels = arrays.get(key)
        if labels is not None and labels.size > 0 and labels.dtype.kind in "iu":
            highest = max(highest, int(labels.max()))
    return highest + 1


def _read_keys(archive: Any) -> dict[str, Array]:
    """Return the arrays of an opened .npz file that belong to a dataset."""
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("it must be a .npz file with the keys x and y, got a single array")
    arrays: dict[str, Array] = {}
    for key in KEYS:
        if key not in archive.files:
            continue
        try:
            arrays[key] = archive[key]
        except ValueError as error:  # an array of objects would have to be unpickled
            raise ValueError(f"the key {key!r}: {error}") from None
    return arrays
