"""Apply the weights of a rule to Flower's models, arrays by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.flower.models import Model, cast_array


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
    """
    divisor = sum_of_weights(weights, normalises)
    new = {}
    for name, current in model.items():
        exact = _exact_type(current)
        change = np.asarray(_step(name, model, trained, weights) / divisor)
        if remembered is not None:
            change = change + remembered[name]
        moved = current.astype(exact) + cast_array(exact, change)
        new[name] = np.asarray(moved).astype(current.dtype)
    return new


def sum_of_weights(weights: Floats, normalises: bool) -> float:
    """Return what a rule divides by: the sum of its weights, or 1 if it does not normalise."""
    total = float(weights.sum())
    return total if normalises and total > 0 else 1.0


def _step(name: str, model: Model, trained: Sequence[Model], weights: Floats) -> npt.NDArray[Any]:
    """Return the sum of weight_i (Theta_i - Theta) for one array of the model."""
    current = model[name]
    exact = _exact_type(current)
    step = np.zeros(current.shape, dtype=np.result_type(exact, np.float64))
    for other, weight in zip(trained, weights, strict=True):
        step += weight * (other[name].astype(exact) - current.astype(exact))
    return step


def _exact_type(array: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the type in which differences are exact enough: int64 for whole numbers."""
    if np.issubdtype(array.dtype, np.inexact):
        return np.result_type(array, np.float64)
    return np.dtype(np.int64)


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
