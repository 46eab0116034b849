"""The world `bernoulli`: each client answers by an independent coin flip in every round."""

from collections.abc import Iterator
from itertools import count

from fedcohort.arrays import Bools, Floats
from fedcohort.checks import check_array, check_int
from fedcohort.rng import RngLike, as_rng, batch_shape, stream
from fedcohort.world.base import Conditions, World
from fedcohort.world.classes import class_rates
from fedcohort.world.options import read_options


def make_bernoulli(conditions: Conditions) -> World:
    """Return a world in which each client answers with the rate of its class."""
    read_options("bernoulli", conditions.options, {})
    rates = class_rates(conditions.num_clients, conditions.rates)
    rows = bernoulli(rates, list(conditions.seeds))
    return World(rows, success_rates=rates)


def bernoulli(rates: Floats, rng: RngLike) -> Iterator[Bools]:
    """Yield who would answer, round after round: each client independently, at its own rate.

    Args:
        rates: Success rate of each client [K], in [0, 1].
        rng: Seed or generator for one run, or a list of S seeds for S runs played together.

    Returns:
        An endless iterator of rows [K], or [S, K] for a list of seeds. The runs of a list are the
        same as each seed gives alone.

    Raises:
        ValueError: If a rate lies outside [0, 1].

    Examples:
        >>> from fedcohort import bernoulli, class_rates
        >>> world = bernoulli(class_rates(4, [0.0, 1.0]), rng=0)
        >>> next(world).tolist()
        [False, False, True, True]
    """
    check_array("rates", rates, (len(rates),), 0.0, 1.0)
    source = as_rng(rng, "world")
    shape = (*batch_shape(source), len(rates))
    return (source.random(shape) < rates for _ in count())


def answers_at(rates: Floats, seed: int, round: int, client: int) -> bool:
    """Return one answer of `bernoulli(rates, seed)` without playing the rounds before it.

    Args:
        rates: Success rate of each client [K], in [0, 1].
        seed: Seed of the world.
        round: Round, counted from 0.
        client: Client, counted from 0.

    Returns:
        Whether the client would answer in that round.

    Raises:
        ValueError: If a rate lies outside [0, 1], or there is no such round or client.
    """
    check_array("rates", rates, (len(rates),), 0.0, 1.0)
    check_int("client", client, 0, len(rates) - 1)
    check_int("round", round, 0)
    source = stream(seed, "world")
    draws_before = round * len(rates) + client
    source.bit_generator.advance(draws_before)  # type: ignore[attr-defined]
    return bool(source.random() < rates[client])
