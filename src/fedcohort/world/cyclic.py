"""The world `cyclic`: each client is online for a part of a cycle that repeats for ever."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from fedcohort.arrays import Bools, Ints
from fedcohort.rng import RngLike, as_rng, batch_shape
from fedcohort.world.base import Conditions, World
from fedcohort.world.classes import class_rates
from fedcohort.world.online import make_online_world, stays
from fedcohort.world.options import FAILURE, Option, read_options

OPTIONS = {"cycle": Option(20.0, low=1.0, is_whole=True), "failure": FAILURE}


def make_cyclic(conditions: Conditions) -> World:
    """Return a world in which a client of rate p is online for round(c p) of c rounds.

    Options: `cycle` (its number of rounds, c, default 20) and `failure` (how often a client that
    is online fails nevertheless, default 0).
    """
    options = read_options("cyclic", conditions.options, OPTIONS)
    cycle = int(options["cycle"])
    failure = options["failure"]
    rates = class_rates(conditions.num_clients, conditions.rates)
    rounds_on = np.rint(rates * cycle).astype(np.int64)
    return make_online_world(
        conditions,
        online=cyclic(rounds_on, cycle, list(conditions.seeds)),
        success_rates=rounds_on / cycle * (1 - failure),
        answers=stays(conditions, failure),
    )


def cyclic(rounds_on: Ints, cycle: int, rng: RngLike) -> Iterator[Bools]:
    """Yield who is online: every client in its own part of the cycle, drawn once.

    Args:
        rounds_on: Number of rounds of the cycle in which each client is online [K].
        cycle: Number of rounds after which everything repeats.
        rng: Seed or generator for one run, or a list of S seeds for S runs played together.

    Returns:
        An endless iterator of rows [K], or [S, K] for a list of seeds.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.cyclic import cyclic
        >>> rows = cyclic(np.array([1, 3]), cycle=3, rng=0)
        >>> sum(next(rows).astype(int) for _ in range(6)).tolist()
        [2, 6]
    """
    source = as_rng(rng, "world")
    shape = (*batch_shape(source), len(rounds_on))
    start = (source.random(shape) * cycle).astype(np.int64)
    return ((start + round) % cycle < rounds_on for round in count())
