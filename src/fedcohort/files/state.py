"""A nested state of arrays and plain values as one sealed safetensors file.

The arrays are tensors of the file; everything else is JSON in its metadata, where a reference
stands in the place of each array. Opening such a file cannot run code.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.checks import one_line
from fedcohort.files.paths import check_file
from fedcohort.files.seal import BLANK, KEY, check_seal, sealed_write
from fedcohort.files.text import parse_json

Arrays = dict[str, npt.NDArray[Any]]
METADATA_KEY = "state"


def save_state(path: Path, state: Mapping[str, Any], previous: Path | None = None) -> None:
    """Write a nested state.

    Args:
        path: The file to write.
        state: Tables of arrays, numbers, strings, lists and None, nested to any depth.
        previous: Where to keep the file that is replaced, if there is one.

    Raises:
        TypeError: If a value fits neither safetensors nor JSON.
    """
    from safetensors.numpy import save_file

    arrays: Arrays = {}
    plain = {KEY: BLANK, **_extract_arrays(state, "", arrays)}
    with sealed_write(path, previous) as draft:
        save_file(arrays, str(draft), metadata={METADATA_KEY: json.dumps(plain)})


def load_state(path: Path, names: Collection[str] = ()) -> dict[str, Any]:
    """Return the state that `save_state` wrote.

    Args:
        path: The file to read.
        names: Names that the state must hold at its top level.

    Raises:
        ValueError: If the file is damaged, of another origin, or lacks one of the names.
    """
    plain, arrays = _read(path, with_arrays=True)
    state: dict[str, Any] = {}
    try:
        for name, part in plain.items():
            state[name] = _insert_arrays(part, arrays)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{_refusal(path)} a state without its array {error}") from None
    if not set(names) <= set(state):
        raise ValueError(f"{_refusal(path)} a state of {', '.join(state) or 'nothing'}")
    return state


def read_plain_state(path: Path) -> dict[str, Any]:
    """Return a state without its arrays: references stand in their places.

    Raises:
        ValueError: If the file is damaged, or of another origin.
    """
    plain, _ = _read(path, with_arrays=False)
    return plain


def pack_json(value: Any) -> npt.NDArray[np.uint8]:
    """Return a plain value as the bytes of its JSON, for values that may grow.

    Plain values of a state are in the header of its file, which may have 100 MB. Arrays are not.
    """
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def unpack_json(packed: npt.NDArray[np.uint8]) -> Any:
    """Return the value that `pack_json` was given.

    Raises:
        ValueError: If the bytes are no JSON.
    """
    return parse_json(packed.tobytes().decode())


def _read(path: Path, with_arrays: bool) -> tuple[dict[str, Any], Arrays]:
    """Return the plain values and the arrays of a file that fits its seal."""
    from safetensors.numpy import load

    check_file(path)
    arrays: Arrays = {}
    try:
        with path.open("rb") as sealed:
            check_seal(sealed, ".safetensors")
            sealed.seek(0)
            content = sealed.read()
        plain = parse_json(_metadata(content)[METADATA_KEY])
        if with_arrays:
            arrays = load(content)
        plain.pop(KEY, None)
    except FileNotFoundError:
        raise ValueError(f"{_refusal(path)} no such file") from None
    except Exception as error:  # A damaged or foreign file makes the readers raise many kinds.
        raise ValueError(f"{_refusal(path)} {one_line(error)}") from None
    return plain, arrays


def _metadata(content: bytes) -> dict[str, str]:
    """Return the metadata in the header: eight bytes of length, then a table in JSON."""
    end = 8 + int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8:end])["__metadata__"]
    return metadata


def _refusal(path: Path) -> str:
    return f"{path} must be a checkpoint of fedcohort, got:"


def _extract_arrays(value: Any, name: str, arrays: Arrays) -> Any:
    """Return the value with a reference for each array; the arrays are added to `arrays`."""
    if isinstance(value, Mapping):
        plain = {}
        for key, part in value.items():
            plain[key] = _extract_arrays(part, f"{name}/{key}", arrays)
        return plain
    if isinstance(value, np.ndarray):
        unique = f"{len(arrays)}{name}"
        arrays[unique] = np.asarray(value, order="C")
        # Two keys, so that no state can be mistaken for a reference.
        return {"array": unique, "in": "safetensors"}
    return value


def _insert_arrays(value: Any, arrays: Arrays) -> Any:
    """Return the value with every reference replaced by its array."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "in"} and value["in"] == "safetensors":
        return arrays[value["array"]]
    return {key: _insert_arrays(part, arrays) for key, part in value.items()}
