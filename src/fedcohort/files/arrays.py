"""Arrays in npz files, without pickle."""

import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.checks import one_line
from fedcohort.files.paths import check_file
from fedcohort.files.seal import ZIP_COMMENT, check_seal, sealed_write


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write named arrays as one compressed npz file, sealed.

    Args:
        path: The file to write.
        arrays: Arrays of numbers or strings, by name.

    Raises:
        ValueError: If an array holds objects, which only pickle could store.
    """
    for name, values in arrays.items():
        if values.dtype.hasobject:
            raise ValueError(f"{path} cannot keep {name!r}, an array of objects")
    with sealed_write(path) as draft:
        with draft.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # none is called "file"
        with zipfile.ZipFile(draft, "a") as archive:
            archive.comment = ZIP_COMMENT.encode()


def load_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an npz file, by name.

    Args:
        path: The file to read.

    Raises:
        ValueError: If the file is missing, damaged, or holds anything but plain arrays.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            check_seal(file, ".npz")
            with np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
    except Exception as error:  # The readers of zip and npy raise many kinds for a damaged file.
        reason = one_line(error)
        if "pickle" in reason:
            # NumPy's own message advises to trust the file.
            reason = "objects, not arrays of numbers or words"
        raise ValueError(f"{path} must be a results file of fedcohort, got: {reason}") from None

    check_plain(path, arrays)
    return arrays


def check_plain(path: Path, arrays: Mapping[str, Any]) -> None:
    """Refuse members of an npz file that are no arrays, or words that are no text.

    Args:
        path: The file that they were read from, for the message.
        arrays: What NumPy read, by name.

    Raises:
        ValueError: If a member is no array, or a word holds numbers that are no characters.
    """
    for name, values in arrays.items():
        if not isinstance(values, np.ndarray):
            raise ValueError(f"{path} must hold arrays alone, got {name!r}")
        if values.dtype.kind == "U" and not _is_text(values):
            raise ValueError(f"{path} must hold words in Unicode, got others in {name!r}")


def _is_text(words: npt.NDArray[Any]) -> bool:
    """Return whether all words are valid Unicode; Python cannot make a string of others."""
    native = np.ascontiguousarray(words.reshape(-1)).astype(words.dtype.newbyteorder("="))
    codes = native.view(np.uint32)
    is_surrogate = (codes >= 0xD800) & (codes <= 0xDFFF)
    return bool((codes <= sys.maxunicode).all() and not is_surrogate.any())
