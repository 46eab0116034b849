"""Each client beside itself: its answers under one deadline, and how often it gives them.

A longer deadline gets more answers of the same clients. So where deadlines differ, a client counts
as another one under each of them.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.log import MOST_CLIENTS, FederationLog
from fedcohort.arrays import Bools, Floats, Ints

SAME = 1.05  # deadlines that differ by less than this factor count as one
MOST_GROUPS = 4  # of deadlines; with more, too few rounds have the same
LARGEST = 1e3  # strength of the shrinkage where clients are alike


def group_rounds(log: FederationLog) -> Ints | None:
    """Return the group of each round [T], one for each deadline; None if there are too many.

    Args:
        log: The log.
    """
    deadlines, place = np.unique(log.deadline_in_round, return_inverse=True)
    group_of_deadline = np.zeros(len(deadlines), dtype=np.int64)
    group = 0
    first = deadlines[0]
    for position, deadline in enumerate(deadlines):
        if deadline > SAME * first:
            group += 1
            first = deadline
        group_of_deadline[position] = group
    return None if group >= MOST_GROUPS else group_of_deadline[place]


def split_tables(log: FederationLog, group: Ints, most: int = MOST_CLIENTS) -> tuple[Bools, Bools]:
    """Return who was asked and who answered, a column per client and group [T, C].

    Args:
        log: The log.
        group: Group of each round, from 0 [T].
        most: The most columns; clients that were asked most often are kept.
    """
    groups = int(group.max()) + 1
    asked, arrived, _ = log.tables(max(1, most // groups))
    columns = []
    for one in range(groups):
        columns.append(asked & (group == one)[:, None])
    split = np.concatenate(columns, axis=1)
    used = split.any(axis=0)
    return split[:, used], (split & np.tile(arrived, groups))[:, used]


@dataclass(frozen=True, eq=False)
class OwnRates:
    """How often clients answer, shrunk towards the others.

    Attributes:
        mean: The rates [C].
        variance: Expected variance of an answer within each client [C].
        error: Variance of the means, under independent answers [C].
    """

    mean: Floats
    variance: Floats
    error: Floats


def shrink_rates(asked: Floats, arrived: Floats) -> OwnRates:
    """Return rates from counts; equal counts of clients that differ are hardly shrunk.

    Args:
        asked: How often each client was asked, at least once [C].
        arrived: How often it answered [C].

    Examples:
        >>> asked = np.full(4, 100.0)
        >>> shrink_rates(asked, np.array([20.0, 40.0, 60.0, 80.0])).mean.round(2).tolist()
        [0.21, 0.4, 0.6, 0.79]
    """
    strength = _strength(asked, arrived)
    count = asked + strength
    mean = (arrived + strength * arrived.sum() / asked.sum()) / count
    variance = mean * (1 - mean) * count / (count + 1)
    return OwnRates(mean, variance, variance / count)


def _strength(asked: Floats, arrived: Floats) -> float:
    """Return the concentration of a Beta distribution of the rates, from their variances."""
    clients = len(asked)
    total = asked.sum()
    if clients < 2 or total <= clients:
        return 1.0
    means = arrived / asked
    within = (arrived * (1 - means)).sum() / (total - clients)
    among = (asked * (means - arrived.sum() / total) ** 2).sum() / (clients - 1)
    typical = (total - (asked**2).sum() / total) / (clients - 1)
    between = (among - within) / typical
    return float(np.clip(within / max(between, 1e-9), 0.1, LARGEST))
