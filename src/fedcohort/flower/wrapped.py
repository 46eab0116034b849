"""The strategy that is wrapped: what it may be, what of it is asked for, and what it keeps between rounds."""

from copy import deepcopy
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.exception import AggregationError
from flwr.serverapp.strategy import (
    Bulyan,
    FedMedian,
    FedTrimmedAvg,
    FedXgbBagging,
    FedXgbCyclic,
    Krum,
    MultiKrum,
    Strategy,
)

from fedcohort.flower.aggregation import as_record, like
from fedcohort.flower.validity import Model, as_model

ROBUST = (
    Bulyan,
    FedMedian,
    FedTrimmedAvg,
    Krum,
    MultiKrum,
)  # against clients that lie, by how they aggregate
MINIMUMS = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")


def layers(strategy: Strategy) -> list[Strategy]:
    """Return a strategy and those it wraps itself, as the differentially private ones do."""
    inner = getattr(strategy, "strategy", None)
    return [strategy, *(layers(inner) if isinstance(inner, Strategy) else [])]


def setting(strategy: Strategy, name: str, default: Any = None) -> Any:
    """Return a setting of the outermost layer that has it."""
    return next(
        (getattr(layer, name) for layer in layers(strategy) if hasattr(layer, name)), default
    )


def sampled_clients(strategy: Strategy) -> int | None:
    """Return for how many clients a differentially private strategy draws its noise; None for others."""
    number: int | None = setting(strategy, "num_sampled_clients")
    return number


def refuse_unfit(strategy: Strategy, aggregation: str, cohort_size: int) -> None:
    """Refuse a strategy that would not do what it is for if it were wrapped."""
    if not isinstance(strategy, Strategy):
        raise ValueError(f"strategy must be one of flwr.serverapp.strategy, got {strategy!r}")
    fraction = next(
        (
            part
            for layer in layers(strategy)
            if (part := getattr(layer, "fraction_train", 1.0)) != 1.0
        ),
        1.0,
    )
    if fraction != 1.0:
        raise ValueError(
            f"fraction_train of the strategy must be 1.0, as the selector decides who trains, got {fraction}"
        )
    if any(isinstance(layer, FedXgbBagging | FedXgbCyclic) for layer in layers(strategy)):
        raise ValueError(
            f"strategy must average arrays of fixed shapes, got {type(strategy).__name__}, which collects trees"
        )
    if aggregation != "wrapped" and (len(layers(strategy)) > 1 or isinstance(strategy, ROBUST)):
        raise ValueError(
            f"aggregation must be 'wrapped' for {type(strategy).__name__}, whose protection it is, got {aggregation!r}"
        )
    if (private := sampled_clients(strategy)) not in (None, cohort_size):
        raise ValueError(
            f"cohort_size must be num_sampled_clients of the strategy, {private}, got {cohort_size}"
        )
    if setting(strategy, "accountant") is not None:
        raise ValueError(
            "strategy must have no privacy accountant, which ends the run when a client fails, got one"
        )


def aggregate(
    strategy: Strategy, server_round: int, replies: list[Message], model: Model
) -> tuple[Model, MetricRecord | None]:
    """Return what a strategy makes of the replies, in the types of the model sent; an empty model if it makes nothing."""
    if len(replies) < (sampled_clients(strategy) or 0):
        raise AggregationError(f"{len(replies)} answers have too little noise to be private")
    arrays, metrics = strategy.aggregate_train(server_round, replies)
    if arrays and set(arrays) != set(model):
        raise AggregationError(
            f"it has other arrays than the model sent: {', '.join(set(arrays) ^ set(model))}"
        )
    return (like(as_model(arrays), model) if arrays else {}), metrics


def average_metrics(
    strategy: Strategy, replies: list[Message], examples_key: str
) -> MetricRecord | None:
    """Return the metrics as the strategy averages them, where it says how."""
    average = setting(strategy, "train_metrics_aggr_fn")
    averaged: MetricRecord | None = (
        average([reply.content for reply in replies], examples_key) if average else None
    )
    return averaged


def minimums(strategy: Strategy) -> list[tuple[Strategy, str, int]]:
    """Return how many nodes a strategy asks for at least, layer by layer."""
    return [
        (layer, name, getattr(layer, name))
        for layer in layers(strategy)
        for name in MINIMUMS
        if hasattr(layer, name)
    ]


def numbers(strategy: Strategy) -> list[dict[str, float]]:
    """Return the real numbers among a strategy's attributes, layer by layer; some learn, such as an adaptive clipping norm."""
    return [
        {
            name: value
            for name, value in vars(layer).items()
            if _is_number(value) and name not in MINIMUMS
        }
        for layer in layers(strategy)
    ]


def state_of(strategy: Strategy, first: list[dict[str, float]]) -> dict[str, Any]:
    """Return what a strategy keeps between rounds: its arrays, such as FedAdam's moments, and numbers that have changed."""
    state: dict[str, Any] = {}
    for depth, (layer, then) in enumerate(zip(layers(strategy), first, strict=True)):
        held = vars(layer).items()
        arrays = {name: _plain(value) for name, value in held if _is_arrays(value)}
        now = {name: value for name, value in held if _is_number(value) and name not in MINIMUMS}
        changed = {
            name: {"number": _as_plain(value)}
            for name, value in now.items()
            if value != then.get(name)
        }
        state[str(depth)] = arrays | changed
    return state


def restore(strategy: Strategy, state: dict[str, Any]) -> None:
    """Give a strategy back what it kept."""
    for depth, layer in enumerate(layers(strategy)):
        for name, value in state.get(str(depth), {}).items():
            setattr(layer, name, _unplain(value))


def attributes(strategy: Strategy) -> list[dict[str, Any]]:
    """Return all attributes as they are, to undo an aggregation that went wrong; arrays may be changed in place."""
    return [
        {
            name: deepcopy(value) if _is_arrays(value) else value
            for name, value in vars(layer).items()
        }
        for layer in layers(strategy)
    ]


def undo(strategy: Strategy, before: list[dict[str, Any]]) -> None:
    """Put the attributes back."""
    for layer, values in zip(layers(strategy), before, strict=True):
        vars(layer).update(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)


def _as_plain(value: Any) -> Any:
    """Return a number as JSON keeps it: whole ones stay whole."""
    return value.item() if isinstance(value, np.generic) else value


def _is_arrays(value: Any) -> bool:
    if isinstance(value, ArrayRecord | np.ndarray):
        return True
    parts = (
        list(value.values())
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else []
    )
    return bool(parts) and all(isinstance(part, np.ndarray) for part in parts)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, ArrayRecord):
        return {"record": as_model(value)}
    if isinstance(value, np.ndarray):
        return {"single": value}
    return (
        {"dict": value}
        if isinstance(value, dict)
        else {"list": {str(place): part for place, part in enumerate(value)}}
    )


def _unplain(value: dict[str, Any]) -> Any:
    kind, held = next(iter(value.items()))
    if kind == "record":
        return as_record(held)
    return list(held.values()) if kind == "list" else held
