"""Independent answers at success rates that may change from round to round."""

from collections.abc import Callable, Iterator
from itertools import count

from fedcohort.arrays import Bools, Floats
from fedcohort.rng import RngLike, as_rng, batch_shape


def varying(rates_in: Callable[[int], Floats], num_clients: int, rng: RngLike) -> Iterator[Bools]:
    """Yield who would answer, each client independently at the rate of the round.

    At constant rates the rows are those of `bernoulli`.

    Args:
        rates_in: Returns the success rates [K] or [S, K] in a round, counted from 0.
        num_clients: Number of clients, K.
        rng: Seed or generator for one run, or a list of S seeds for S runs played together.

    Returns:
        An endless iterator of rows [K], or [S, K] for a list of seeds.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.varying import varying
        >>> rows = varying(lambda round: np.array([round % 2, 1.0]), 2, rng=0)
        >>> next(rows).tolist(), next(rows).tolist()
        ([False, True], [True, True])
    """
    source = as_rng(rng, "world")
    shape = (*batch_shape(source), num_clients)
    return (source.random(shape) < rates_in(round) for round in count())
