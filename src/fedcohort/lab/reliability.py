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
        classes: Class of each client, from 0, [K]; [P, K] if it depends on who owns what.
        rates: Mean success rate of the clients of each class, [G].
        members: How many clients each class has in all federations, [G].
        quarters: Which quarter of the clients each class is, or its own number, [G].
    """

    classes: Ints
    rates: Floats
    members: Ints
    quarters: Ints


def reliability(config: Config, success_rates: Floats) -> Reliability:
    """Return the classes of a world, or quartiles of the success rates if it has none.

    Quarters are counted from the least reliable. Clients with equal rates are in one class, so
    there may be fewer than four.

    Args:
        config: The settings.
        success_rates: How often each client answers, [K], or [P, K] for P federations, of which
            each has quarters of its own.
    """
    quarters, classes = _number_quarters(success_rates)
    if has_classes(config):
        classes = client_classes(config)
        quarters = np.arange(classes.max() + 1)
    class_of_each = np.broadcast_to(classes, success_rates.shape).ravel()
    totals = np.bincount(class_of_each, weights=success_rates.ravel())
    members = np.bincount(class_of_each)
    return Reliability(classes, totals / members, members, quarters)


def _number_quarters(success_rates: Floats) -> tuple[Ints, Ints]:
    """Return the quarters that have clients [G], and the class of each client [..., K]."""
    edges = np.quantile(success_rates, QUARTILES, axis=-1, keepdims=True)
    quarter_of_each = (success_rates > edges).sum(axis=0)
    quarters, classes = np.unique(quarter_of_each, return_inverse=True)
    return quarters, np.asarray(classes).reshape(quarter_of_each.shape)
