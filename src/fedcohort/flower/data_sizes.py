"""How many samples each client has, for selectors that weigh clients by their data."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.checks import check_range
from fedcohort.flower.clients import ClientRegistry
from fedcohort.selection.data_sizes import SIZES
from fedcohort.selection.protocol import Selector

REPLIES = "replies"
HINT = f"numbers of samples by name of the client, or {REPLIES!r} for those that clients declare"


def plausible_examples(declared: Sequence[float | None], most: float) -> list[float | None]:
    """Return declared numbers of examples, None where one is unknown or beyond a bound.

    A number can be accepted while too few clients are known to define a bound. When there is one,
    the number counts no more than if its reply had been rejected.

    Args:
        declared: Number of examples of every client, None where it is unknown.
        most: The largest number that counts.
    """
    return [None if number is None or number > most else number for number in declared]


class DataSizes:
    """The numbers of samples that a selector is told.

    Args:
        given: Numbers by name of the client, or "replies" for the numbers of examples that clients
            declare when they return a model. None if the selector needs none.

    Raises:
        ValueError: If it is neither, or a number is out of bounds.
    """

    def __init__(self, given: Mapping[str, float] | str | None = None) -> None:
        is_table = isinstance(given, Mapping) and len(given) > 0
        if given is not None and given != REPLIES and not is_table:
            raise ValueError(f"data_sizes must be {HINT}, got {given!r}")
        self.given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        self.is_known = given is not None
        for name, size in self.given.items():
            check_range(f"data_sizes of {name}", size, *SIZES)

    def look_up(self, registry: ClientRegistry, most: float = inf) -> Floats:
        """Return a number for each client by its index.

        A client whose number is unknown counts as the mean of the others, and as 1 if none is
        known. A number that was given takes precedence over a declared one.

        Args:
            registry: The clients, with the numbers that they declared.
            most: A declared number beyond it counts as unknown.
        """
        sizes = np.full(len(registry), np.nan)
        for index, declared in enumerate(plausible_examples(registry.examples, most)):
            size = self.given.get(registry.name(index), declared)
            if size is not None:
                sizes[index] = size
        known = sizes[np.isfinite(sizes)]
        sizes[np.isnan(sizes)] = known.mean() if known.size else 1.0
        return np.asarray(np.clip(sizes, *SIZES))

    def tell(self, selector: Selector, registry: ClientRegistry, most: float = inf) -> None:
        """Give a selector the numbers as they are known now, if it was built on them."""
        if self.is_known and hasattr(selector, "data_sizes"):
            selector.data_sizes = self.look_up(registry, most)[: selector.num_clients]
