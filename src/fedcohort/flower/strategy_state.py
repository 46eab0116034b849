"""The memory of a Flower strategy: its attributes as plain values, saved and restored.

Flower's strategies have no `state_dict`. Between rounds they keep arrays (FedAdam's moments) and
numbers (an adaptive clipping norm) in their attributes, and some wrap another strategy. Here they
are read and written attribute by attribute, one dict for each strategy from the outermost to the
innermost.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from copy import copy, deepcopy
from dataclasses import is_dataclass
from random import Random
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import Strategy

from fedcohort.flower.models import model_from_record, record_from_model

MINIMUMS = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")
COPYABLE = (
    ArrayRecord,
    ConfigRecord,
    MetricRecord,
    RecordDict,
    bytearray,
    np.ndarray,
    np.random.Generator,
    np.random.RandomState,
    Random,
)


def layers(strategy: Strategy) -> list[Strategy]:
    """Return a strategy and those it wraps, as the differentially private ones do."""
    found = [strategy]
    inner = getattr(strategy, "strategy", None)
    while isinstance(inner, Strategy):
        found.append(inner)
        inner = getattr(inner, "strategy", None)
    return found


def read_numbers(strategy: Strategy) -> list[dict[str, float]]:
    """Return the numbers among a strategy's attributes, layer by layer."""
    return [_numbers_of(layer) for layer in layers(strategy)]


def save_state(strategy: Strategy, initial_numbers: list[dict[str, float]]) -> dict[str, Any]:
    """Return what a strategy keeps between rounds: its arrays, and numbers that have changed.

    Numbers that did not change are settings. They are not saved, so that a resumed run uses the
    settings it is given.

    Args:
        strategy: The strategy.
        initial_numbers: `read_numbers` of the strategy before the first round.
    """
    state: dict[str, Any] = {}
    for depth, layer in enumerate(layers(strategy)):
        kept = {}
        for name, value in vars(layer).items():
            if _holds_arrays(value):
                kept[name] = _to_plain(value)
        for name, number in _numbers_of(layer).items():
            if number != initial_numbers[depth].get(name):
                kept[name] = {"number": _plain_number(number)}
        state[str(depth)] = kept
    return state


def load_state(strategy: Strategy, state: dict[str, Any]) -> None:
    """Give a strategy back what `save_state` returned."""
    for depth, layer in enumerate(layers(strategy)):
        for name, value in state.get(str(depth), {}).items():
            setattr(layer, name, _from_plain(value))


def copy_attributes(strategy: Strategy) -> list[dict[str, Any]]:
    """Return copies of all attributes, to undo an aggregation that fails.

    Numbers, arrays, records, random generators, and containers and data classes of them are
    copied, because an aggregation may change them in place. Other objects, such as open files,
    cannot be copied safely and are kept as they are.
    """
    known: dict[int, Any] = {}
    return [_copy_value(vars(layer), known) for layer in layers(strategy)]


def restore_attributes(strategy: Strategy, copies: list[dict[str, Any]]) -> None:
    """Put back the attributes that `copy_attributes` returned, and remove new ones.

    The copies stay as they are, so that they can be put back again.
    """
    known: dict[int, Any] = {}
    for layer, attributes in zip(layers(strategy), copies, strict=True):
        fresh = _copy_value(attributes, known)
        vars(layer).clear()
        vars(layer).update(fresh)


def _copy_value(value: Any, known: dict[int, Any]) -> Any:
    """Return a copy of a value; an object that occurs twice is copied once."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, COPYABLE):
        return deepcopy(value, known)

    kind = type(value)
    if kind in (dict, OrderedDict, defaultdict, Counter):
        copied = copy(value)
        known[id(value)] = copied
        for key, part in value.items():
            copied[key] = _copy_value(part, known)
        return copied
    if kind in (list, deque):
        copied = copy(value)
        known[id(value)] = copied
        for position, part in enumerate(value):
            copied[position] = _copy_value(part, known)
        return copied
    if kind is tuple:
        return tuple([_copy_value(part, known) for part in value])
    if kind is set:
        return set(value)
    if is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
        copied = copy(value)
        known[id(value)] = copied
        vars(copied).update(_copy_value(vars(value), known))
        return copied
    return value


def _numbers_of(layer: Strategy) -> dict[str, float]:
    numbers = {}
    for name, value in vars(layer).items():
        if _is_number(value) and name not in MINIMUMS:
            numbers[name] = value
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)


def _plain_number(value: Any) -> Any:
    """Return a number as JSON keeps it; integers stay integers."""
    return value.item() if isinstance(value, np.generic) else value


def _holds_arrays(value: Any) -> bool:
    """Return whether a value is a record, an array, or a non-empty dict or list of arrays."""
    if isinstance(value, ArrayRecord | np.ndarray):
        return True
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(part, np.ndarray) for part in value)


def _to_plain(value: Any) -> dict[str, Any]:
    """Return a dict with one key that says what the value was; `_from_plain` reads it."""
    if isinstance(value, ArrayRecord):
        return {"record": model_from_record(value)}
    if isinstance(value, np.ndarray):
        return {"single": value}
    if isinstance(value, dict):
        return {"dict": value}
    return {"list": {str(position): part for position, part in enumerate(value)}}


def _from_plain(plain: dict[str, Any]) -> Any:
    kind, value = next(iter(plain.items()))
    if kind == "record":
        return record_from_model(value)
    if kind == "list":
        return list(value.values())
    return value
