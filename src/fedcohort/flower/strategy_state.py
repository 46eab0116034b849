"""The memory of a Flower strategy: what it keeps between rounds, saved and restored.

Flower's strategies have no `state_dict`. Between rounds they keep arrays (FedAdam's moments) and
numbers (an adaptive clipping norm) in their attributes, and some wrap another strategy. Here the
attributes are read and written one by one, one dict for each strategy from the outermost to the
innermost. A strategy of one's own that has `state_dict` and `load_state_dict` is asked instead.
"""

from collections import OrderedDict
from types import NoneType
from typing import Any

import numpy as np
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy

from fedcohort.files import pack_json, unpack_json
from fedcohort.flower.models import model_from_record, record_from_model
from fedcohort.flower.strategy_layers import is_same, layers

MINIMUMS = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")
STATE_DICT = "state_dict()"  # no attribute has such a name
JSON_TYPES = (NoneType, bool, int, float, str)
ARRAY_KINDS = "biuf"  # booleans and numbers, as safetensors keeps them
LARGEST_ITEM = 8  # bytes


def save_state(
    strategy: Strategy, initial: list[dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Return what a strategy keeps between rounds: arrays, and attributes that have changed.

    Other attributes that did not change are settings. They are not saved, so that a resumed run
    uses the settings it is given.

    Args:
        strategy: The strategy.
        initial: `copy_attributes` of the strategy before the first round.

    Returns:
        The state, and the attributes that changed and cannot be saved, with their types.
    """
    state: dict[str, Any] = {}
    unsaved = []
    for depth, layer in enumerate(layers(strategy)):
        kept = {}
        for name, value in _attributes(layer).items():
            is_changed = name not in initial[depth] or not is_same(value, initial[depth][name])
            try:
                if is_changed or _has_arrays(value):
                    kept[name] = to_plain(value)
            except (TypeError, ValueError, RecursionError):
                if is_changed:
                    kind = type(value).__name__
                    unsaved.append(f"{type(layer).__name__}.{name} ({kind})")
        state[str(depth)] = kept
    return state, unsaved


def load_state(strategy: Strategy, state: dict[str, Any]) -> None:
    """Give a strategy back what `save_state` returned."""
    for depth, layer in enumerate(layers(strategy)):
        for name, plain in state.get(str(depth), {}).items():
            value = from_plain(plain)
            if name == STATE_DICT:
                layer.load_state_dict(value)  # type: ignore[attr-defined]
            else:
                setattr(layer, name, value)


def _attributes(layer: Strategy) -> dict[str, Any]:
    """Return what may have to be saved of a layer, by name."""
    if hasattr(layer, "state_dict") and hasattr(layer, "load_state_dict"):
        return {STATE_DICT: layer.state_dict()}
    return {name: value for name, value in vars(layer).items() if name not in MINIMUMS}


def to_plain(value: Any) -> Any:
    """Return a value as an array or a dict with one key, which says what the value was.

    Raises:
        TypeError: If `from_plain` could not return a value of the same types.
    """
    kind = type(value)
    if kind is np.ndarray:
        return _check_numbers(value)
    if isinstance(value, ArrayRecord):
        return {"record": model_from_record(value)}
    if isinstance(value, np.generic):
        return {"scalar": _check_numbers(np.asarray(value))}
    if _is_json(value):
        return {"json": pack_json(value)}
    if kind in (list, tuple):
        parts = {str(position): to_plain(part) for position, part in enumerate(value)}
        return {kind.__name__: parts}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: to_plain(part) for key, part in value.items()}}
    if kind is dict:  # JSON would make strings of its keys
        return {"pairs": to_plain(list(value.items()))}
    if kind is OrderedDict:
        return {"ordered": to_plain(list(value.items()))}
    raise TypeError(f"a {kind.__name__} cannot be saved")


def from_plain(plain: Any) -> Any:
    """Return the value that `to_plain` was given.

    Raises:
        ValueError: If it returned no such thing.
    """
    if isinstance(plain, np.ndarray):
        return plain
    ((kind, value),) = plain.items()
    if kind == "record":
        return record_from_model(value)
    if kind == "scalar":
        return value[()]
    if kind == "json":
        return unpack_json(value)
    if kind in ("list", "tuple"):
        parts = [from_plain(part) for part in value.values()]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {key: from_plain(part) for key, part in value.items()}
    if kind == "pairs":
        return dict(from_plain(value))
    if kind == "ordered":
        return OrderedDict(from_plain(value))
    if kind in ("single", "number"):  # version 0.1.0 wrote arrays and numbers in this way
        return value
    raise ValueError(f"{kind!r} is no kind of value")


def _is_json(value: Any) -> bool:
    """Return whether JSON gives a value back with the same types."""
    kind = type(value)
    if kind is list:
        return all(map(_is_json, value))
    if kind is dict:
        return all(type(key) is str and _is_json(part) for key, part in value.items())
    return kind in JSON_TYPES


def _has_arrays(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(map(_has_arrays, value))
    return isinstance(value, ArrayRecord | np.ndarray)


def _check_numbers(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Refuse an array that safetensors would refuse."""
    if array.dtype.kind not in ARRAY_KINDS or array.dtype.itemsize > LARGEST_ITEM:
        raise TypeError(f"an array of {array.dtype} cannot be saved")
    return array
