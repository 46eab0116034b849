"""Apply the rules of `fedcohort.aggregation` to Flower's models, arrays by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.aggregation.registry import Rule
from fedcohort.arrays import Floats
from fedcohort.flower.models import Model, cast_array


def apply_rule(rule: Rule, model: Model, trained: Sequence[Model], shares: Floats) -> Model:
    """Return the next model by a rule. If no model arrived, the model stays as it is.

    The rule sees one run: all arrays of the model in one row, in double precision.

    Args:
        rule: A value of `AGGREGATIONS`.
        model: The current model, Theta.
        trained: The models Theta_i that arrived.
        shares: Share of each of them in the data of ALL clients.

    Returns:
        The new model, in the types of the current one. Whole numbers are rounded.
    """
    if not model:
        return {}
    row = np.concatenate([_step(name, model, trained, shares).ravel() for name in model])
    change = rule(row[None, :], np.array([shares.sum()]))[0]

    new = {}
    start = 0
    for name, current in model.items():
        part = change[start : start + current.size].reshape(current.shape)
        start += current.size
        if not np.iscomplexobj(current):
            part = part.real  # one complex array makes the whole row complex
        exact = _exact_type(current)
        part = part.astype(np.result_type(exact, np.float64), copy=False)
        moved = current.astype(exact) + cast_array(exact, part)
        new[name] = np.asarray(moved).astype(current.dtype)
    return new


def _step(name: str, model: Model, trained: Sequence[Model], shares: Floats) -> npt.NDArray[Any]:
    """Return the sum of share_i (Theta_i - Theta) for one array of the model."""
    current = model[name]
    exact = _exact_type(current)
    step = np.zeros(current.shape, dtype=np.result_type(exact, np.float64))
    for other, share in zip(trained, shares, strict=True):
        step += share * (other[name].astype(exact) - current.astype(exact))
    return step


def _exact_type(array: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the type in which differences are exact enough: int64 for whole numbers."""
    if np.issubdtype(array.dtype, np.inexact):
        return np.result_type(array, np.float64)
    return np.dtype(np.int64)


def data_shares(arrived: Sequence[float], declared: Sequence[float | None]) -> Floats:
    """Return the share of each client that arrived in the examples of all clients.

    A client that never declared a number counts as the mean of the others.

    Args:
        arrived: Number of examples of each client that arrived.
        declared: Number of examples of every client, None where it is unknown.
    """
    numbers = [number for number in declared if number is not None]
    unknown = len(declared) - len(numbers)
    total = sum(numbers) + unknown * float(np.mean(numbers))
    return np.asarray(np.asarray(arrived, dtype=np.float64) / total)
