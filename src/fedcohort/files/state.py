"""A nested state of arrays and plain values as one safetensors file.

The arrays are tensors of the file; everything else is JSON in its metadata, where a reference
stands in the place of each array. Opening such a file cannot run code.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.files.paths import atomic_write, check_file

Arrays = dict[str, npt.NDArray[Any]]
METADATA_KEY = "state"


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state.

    Args:
        path: The file to write.
        state: Tables of arrays, numbers, strings, lists and None, nested to any depth.

    Raises:
        TypeError: If a value fits neither safetensors nor JSON.
    """
    from safetensors.numpy import save_file

    arrays: Arrays = {}
    plain = _extract_arrays(state, "", arrays)
    with atomic_write(path) as draft:
        save_file(arrays, str(draft), metadata={METADATA_KEY: json.dumps(plain)})


def load_state(path: Path, names: Collection[str] = ()) -> dict[str, Any]:
    """Return the state that `save_state` wrote.

    Args:
        path: The file to read.
        names: Names that the state must hold at its top level.

    Raises:
        ValueError: If the file is damaged, of another origin, or lacks one of the names.
    """
    from safetensors import SafetensorError, safe_open

    check_file(path)
    try:
        with safe_open(str(path), framework="numpy") as file:
            plain = json.loads(file.metadata()[METADATA_KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        state: dict[str, Any] = {}
        for name, part in plain.items():
            state[name] = _insert_arrays(part, arrays)
        if not set(names) <= set(state):
            raise TypeError(f"a state of {', '.join(state) or 'nothing'}")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} must be a checkpoint of fedcohort, got: {error}") from None
    return state


def _extract_arrays(value: Any, name: str, arrays: Arrays) -> Any:
    """Return the value with a reference for each array; the arrays are added to `arrays`."""
    if isinstance(value, Mapping):
        plain = {}
        for key, part in value.items():
            plain[key] = _extract_arrays(part, f"{name}/{key}", arrays)
        return plain
    if isinstance(value, np.ndarray):
        unique = f"{len(arrays)}{name}"
        arrays[unique] = np.array(value, order="C")
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
