"""The paper's aggregation on Flower's records: clients that did not return count as the current model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.flower.models import Model

AGGREGATIONS = ("wrapped", "paper")


def paper(model: Model, trained: Sequence[Model], shares: Floats) -> Model:
    """Return Theta + sum of share_i (Theta_i - Theta): each share is of ALL clients' data; if none arrived, the model."""
    new = {}
    for name, mine in model.items():
        exact = (
            np.result_type(mine, np.float64)
            if np.issubdtype(mine.dtype, np.inexact)
            else np.dtype(np.int64)
        )
        change = np.zeros(mine.shape, dtype=np.result_type(exact, np.float64))
        for theirs, share in zip(trained, shares, strict=True):
            change += share * (theirs[name].astype(exact) - mine.astype(exact))
        new[name] = np.asarray(mine.astype(exact) + as_type(exact, change)).astype(mine.dtype)
    return new


def shares_of(arrived: Sequence[float], declared: Sequence[float | None]) -> Floats:
    """Return the shares of the arrived in all clients' examples; those that never declared any count as the mean."""
    known = [number for number in declared if number is not None]
    total = sum(known) + (len(declared) - len(known)) * float(np.mean(known))
    return np.asarray(np.asarray(arrived, dtype=np.float64) / total)


def as_type(dtype: npt.DTypeLike, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values in another type, rounded where it has whole numbers alone."""
    if np.issubdtype(dtype, np.inexact):
        return values.astype(dtype)
    return np.asarray(np.rint(values)).astype(dtype) if np.isfinite(values).all() else values


def like(model: Model, sent: Model) -> Model:
    """Return a model in the types of the one sent: strategies average in float64, and clients could not return that."""
    return {
        name: array if array.dtype == sent[name].dtype else as_type(sent[name].dtype, array)
        for name, array in model.items()
    }
