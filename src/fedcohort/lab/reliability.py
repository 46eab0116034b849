"""Classes of clients by how often they answer: who is left out is told by these."""

from dataclasses import dataclass

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.lab.config import Config, client_classes, has_classes

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Clients in classes by how often they answer.

    Attributes:
        classes: Class of each client, from 0, [K].
        rates: Mean success rate of the clients of each class, [G].
    """

    classes: Ints
    rates: Floats


def reliability(config: Config, success_rates: Floats) -> Reliability:
    """Return the classes of a world, or quartiles of the success rates if it has none.

    Args:
        config: The settings.
        success_rates: How often each client answers, [K].
    """
    classes = quartile_classes(success_rates)
    if has_classes(config):
        classes = client_classes(config)
    totals = np.bincount(classes, weights=success_rates)
    return Reliability(classes, totals / np.bincount(classes))


def quartile_classes(success_rates: Floats) -> Ints:
    """Return which quarter of the clients each is in, the least reliable first.

    Clients with equal rates are in one class, so there may be fewer than four.

    Args:
        success_rates: How often each client answers, [K].

    Returns:
        Class of each client, from 0 without gaps, [K].

    Examples:
        >>> quartile_classes(np.array([0.9, 0.1, 0.5, 0.7])).tolist()
        [3, 0, 1, 2]
        >>> quartile_classes(np.array([0.5, 0.5, 0.5, 0.9])).tolist()
        [0, 0, 0, 1]
    """
    edges = np.quantile(success_rates, QUARTILES)
    quarters = np.searchsorted(edges, success_rates, side="left")
    _, classes = np.unique(quarters, return_inverse=True)
    return np.asarray(classes)
