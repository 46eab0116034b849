"""Apply the weights of a rule to Flower's models, arrays by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.flower.models import Model, cast_array

LARGEST_STEP = 2.0**62  # of whole numbers, up to which int64 does not wrap around


def apply_weights(
    model: Model,
    trained: Sequence[Model],
    weights: Floats,
    normalises: bool,
    remembered: Model | None = None,
) -> Model:
    """Return the next model by a rule's weights. If no model arrived, the model stays.

    Args:
        model: The current model, Theta.
        trained: The models Theta_i that arrived.
        weights: Weight of each of their updates.
        normalises: Whether the weights are divided by their sum.
        remembered: What updates of other rounds add to the model, in float64; None for nothing.

    Returns:
        The new model, in the types of the current one. Whole numbers are rounded.

    Raises:
        ValueError: If a whole number does not fit into its type.
    """
    divisor = sum_of_weights(weights, normalises)
    new = {}
    for name, current in model.items():
        change = np.asarray(_step(name, model, trained, weights) / divisor)
        if remembered is not None:
            change = change + remembered[name]
        new[name] = _move(current, change)
    return new


def sum_of_weights(weights: Floats, normalises: bool) -> float:
    """Return what a rule divides by: the sum of its weights, or 1 if it does not normalise."""
    total = float(weights.sum())
    return total if normalises and total > 0 else 1.0


def _step(name: str, model: Model, trained: Sequence[Model], weights: Floats) -> npt.NDArray[Any]:
    """Return the sum of weight_i (Theta_i - Theta) for one array of the model."""
    current = model[name]
    step = np.zeros(current.shape, dtype=np.result_type(current.dtype, np.float64))
    for other, weight in zip(trained, weights, strict=True):
        step += weight * _difference(other[name], current)
    return step


def _difference(other: npt.NDArray[Any], current: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return other - current in double precision, and exact for whole numbers that are close."""
    precise = np.result_type(current.dtype, np.float64)
    difference = np.asarray(other.astype(precise) - current.astype(precise))
    if np.issubdtype(current.dtype, np.inexact):
        return difference
    exact = other.astype(np.int64) - current.astype(np.int64)  # may wrap around beyond LARGEST_STEP
    return np.where(np.abs(difference) < LARGEST_STEP, exact, difference)


def _move(current: npt.NDArray[Any], change: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array moved by a change, in its own type; whole numbers are rounded.

    Raises:
        ValueError: If a whole number does not fit into its type.
    """
    precise = np.result_type(current.dtype, np.float64)
    moved = np.asarray(current.astype(precise) + change)
    if np.issubdtype(current.dtype, np.inexact):
        return moved.astype(current.dtype)
    if not np.isfinite(moved).all():
        raise ValueError("the aggregated whole numbers are not finite")
    if current.dtype == np.bool_:
        return moved > 0.5

    # The range is checked in floats, where nothing wraps around. Floats are not exact for large
    # numbers, so what stays is not checked, and small steps are added as whole numbers.
    steps = np.asarray(np.rint(change))
    checked = cast_array(current.dtype, np.where(steps == 0, 0.0, moved))
    is_small = np.abs(steps) < LARGEST_STEP
    exact = current.astype(np.int64) + np.where(is_small, steps, 0.0).astype(np.int64)
    return np.where(is_small, exact.astype(current.dtype), checked)


def data_shares(declared: Sequence[float | None]) -> Floats:
    """Return the share of each client in the examples of all clients.

    A client that never declared a number counts as the mean of the others. If nobody did, all
    shares are equal.

    Args:
        declared: Number of examples of every client, None where it is unknown.
    """
    numbers = [number for number in declared if number is not None]
    mean = float(np.mean(numbers)) if numbers else 1.0
    total = sum(numbers) + (len(declared) - len(numbers)) * mean
    examples = [mean if number is None else number for number in declared]
    return np.asarray(np.array(examples, dtype=np.float64) / total)
