"""The paper's aggregation on Flower's records: clients that did not return count as the current model."""

from collections.abc import Sequence

import numpy as np
from flwr.app import Array, ArrayRecord

from fedcohort.arrays import Floats
from fedcohort.flower.validity import Model

AGGREGATIONS = ("wrapped", "paper")


def paper(model: Model, trained: Sequence[Model], shares: Floats) -> Model:
    """Return Theta + sum of share_i (Theta_i - Theta): each share is of ALL clients' data; if none arrived, the model."""
    new = {}
    for name, mine in model.items():
        change = np.zeros(mine.shape, dtype=np.float64)
        for theirs, share in zip(trained, shares, strict=True):
            change += share * (theirs[name].astype(np.float64) - mine.astype(np.float64))
        moved = mine.astype(np.float64) + change
        new[name] = (moved if np.issubdtype(mine.dtype, np.floating) else np.rint(moved)).astype(mine.dtype)
    return new


def shares_of(arrived: Sequence[float], declared: Sequence[float | None]) -> Floats:
    """Return the shares of the arrived in all clients' examples; those that never declared any count as the mean."""
    known = [number for number in declared if number is not None]
    total = sum(known) + (len(declared) - len(known)) * float(np.mean(known))
    return np.asarray(np.asarray(arrived, dtype=np.float64) / total)


def as_record(model: Model) -> ArrayRecord:
    """Return a model as Flower sends it."""
    return ArrayRecord({name: Array(array) for name, array in model.items()})
