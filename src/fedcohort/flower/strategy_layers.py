"""The strategies inside a strategy, and copies of their attributes.

A copy serves to undo an aggregation that fails, and to see which attributes a run has changed.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from copy import copy, deepcopy
from dataclasses import is_dataclass
from random import Random
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import Strategy

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
COMPARABLE = (
    ArrayRecord,
    ConfigRecord,
    MetricRecord,
    RecordDict,
    bool,
    bytearray,
    bytes,
    complex,
    float,
    frozenset,
    int,
    np.generic,
    set,
    str,
)
MAPPINGS = (dict, OrderedDict, defaultdict, Counter)


def layers(strategy: Strategy) -> list[Strategy]:
    """Return a strategy and those it wraps, as the differentially private ones do."""
    found = [strategy]
    inner = getattr(strategy, "strategy", None)
    while isinstance(inner, Strategy):
        found.append(inner)
        inner = getattr(inner, "strategy", None)
    return found


def class_names(strategy: Strategy) -> str:
    """Return the class of a strategy; those that it wraps follow in brackets."""
    classes = [type(layer) for layer in layers(strategy)]
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in classes]
    return "(".join(names) + ")" * (len(names) - 1)


def copy_attributes(strategy: Strategy) -> list[dict[str, Any]]:
    """Return copies of all attributes, layer by layer.

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


def is_same(value: Any, before: Any, compared: set[tuple[int, int]] | None = None) -> bool:
    """Return whether a value is as it was when `copy_attributes` copied it.

    Objects that are not copied count as the same as long as they are not replaced.

    Args:
        value: The value of an attribute, or a part of one.
        before: Its copy.
        compared: What is being compared already, for values that contain themselves.
    """
    if value is before:
        return True
    kind = type(value)
    if kind is not type(before):
        return False
    compared = set() if compared is None else compared
    if (id(value), id(before)) in compared:
        return True
    compared.add((id(value), id(before)))

    if isinstance(value, np.random.Generator):
        return is_same(value.bit_generator.state, before.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return is_same(value.get_state(legacy=False), before.get_state(legacy=False))
    if isinstance(value, Random):
        return bool(value.getstate() == before.getstate())
    if isinstance(value, np.ndarray):
        is_alike = value.dtype == before.dtype and value.shape == before.shape
        return bool(is_alike and value.tobytes() == before.tobytes())
    if kind in MAPPINGS:
        if list(value) != list(before):
            return False
        return all(is_same(value[key], before[key], compared) for key in value)
    if kind in (list, deque, tuple):
        if len(value) != len(before):
            return False
        pairs = zip(value, before, strict=True)
        return all(is_same(part, part_before, compared) for part, part_before in pairs)
    if _is_copied_dataclass(value):
        return is_same(vars(value), vars(before), compared)
    return isinstance(value, COMPARABLE) and bool(value == before)


def _copy_value(value: Any, known: dict[int, Any]) -> Any:
    """Return a copy of a value; an object that occurs twice is copied once."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, COPYABLE):
        return deepcopy(value, known)

    kind = type(value)
    if kind in MAPPINGS:
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
    if _is_copied_dataclass(value):
        copied = copy(value)
        known[id(value)] = copied
        vars(copied).update(_copy_value(vars(value), known))
        return copied
    return value


def _is_copied_dataclass(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__")
