"""Worlds whose clients are online or offline, and may fail although they are online."""

from collections.abc import Iterator
from itertools import repeat, tee

import numpy as np

from fedcohort.arrays import Bools, Floats
from fedcohort.rng import as_rng, batch_shape
from fedcohort.world.base import Conditions, World

Row = tuple[Bools, Bools]  # who is online [S, K], who answers [S, K]


def make_online_world(
    conditions: Conditions,
    online: Iterator[Bools],
    success_rates: Floats,
    answers: Iterator[Bools] | None = None,
    num_rounds: int | None = None,
) -> World:
    """Return a world in which whoever is online answers, unless it fails.

    Args:
        conditions: They say whether the server knows who is offline before it asks.
        online: Rows [S, K] of who is online.
        success_rates: How often each client answers [K] or [S, K].
        answers: Rows [S, K] of who answers if it is online; None if all do.
        num_rounds: Number of rows, or None if they never end.
    """
    pairs = _pairs(online, answers)
    available = None
    if conditions.knows_offline:
        pairs, same_pairs = tee(pairs)
        available = (is_online for is_online, _ in same_pairs)
    rows = (is_answering for _, is_answering in pairs)
    return World(rows, success_rates, num_rounds=num_rounds, available=available)


def stays(conditions: Conditions, failure: float) -> Iterator[Bools] | None:
    """Return rows [S, K] of who does not fail after it was asked; None if nobody ever fails.

    The coins have a stream of their own, so that the same clients are online however many fail.
    """
    if not failure:
        return None
    source = as_rng(list(conditions.seeds), "world", "failure")
    shape = (*batch_shape(source), conditions.num_clients)
    return (source.random(shape) >= failure for _ in repeat(None))


def _pairs(online: Iterator[Bools], answers: Iterator[Bools] | None) -> Iterator[Row]:
    """Yield who is online and who answers, each row computed once."""
    if answers is None:
        for is_online in online:
            yield is_online, is_online
        return
    for is_online, would_answer in zip(online, answers, strict=False):
        yield is_online, np.logical_and(is_online, would_answer)
