"""The world `groups`: regions of clients that go down together."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Ints
from fedcohort.rng import as_rng
from fedcohort.world.base import Conditions, World
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.markov import LENGTHS, mean_lengths, on_off
from fedcohort.world.online import make_online_world
from fedcohort.world.options import Option, read_options

OPTIONS = {
    "groups": Option(4.0, low=1.0, is_whole=True),
    "up": Option(0.8, low=0.0, high=1.0),
    "cycle": Option(None, low=2.0),
    "on": Option(None, low=1.0),
    "off": Option(None, low=1.0),
}


def make_groups(conditions: Conditions) -> World:
    """Return a world in which a client answers if its group is up and its own coin says so.

    Options: `groups` (their number, default 4), `up` (share of the rounds in which a group is up,
    default 0.8), and one of `cycle`, `on` and `off` (mean rounds, as in the world `markov`).
    """
    options = read_options("groups", conditions.options, OPTIONS)
    seeds = list(conditions.seeds)
    rates = class_rates(conditions.num_clients, conditions.rates)
    num_groups = int(options["groups"])
    if num_groups > conditions.num_clients:
        raise ValueError(
            f"world option groups must be at most {conditions.num_clients}, "
            f"the number of clients, got {num_groups}"
        )

    up = np.full(num_groups, options["up"])
    lengths = {name: options[name] for name in LENGTHS if name in options}
    chains = on_off(up, *mean_lengths(up, lengths), as_rng(seeds, "world", "groups"))
    groups = group_of(conditions.num_clients, num_groups)
    return make_online_world(
        conditions,
        online=_spread(chains, groups),
        success_rates=rates * options["up"],
        answers=bernoulli(rates, seeds),
    )


def group_of(num_clients: int, num_groups: int) -> npt.NDArray[np.int64]:
    """Return the group of every client: they are dealt in turn, so groups cut across classes.

    Args:
        num_clients: Number of clients, K.
        num_groups: Number of groups.

    Returns:
        The group of each client [K], counted from 0.

    Examples:
        >>> from fedcohort.world.groups import group_of
        >>> group_of(5, num_groups=2).tolist()
        [0, 1, 0, 1, 0]
    """
    return np.arange(num_clients) % num_groups


def _spread(chains: Iterator[Bools], groups: Ints) -> Iterator[Bools]:
    """Yield the state of each client's group, [S, K], from rows [S, groups]."""
    return (is_up[..., groups] for is_up in chains)
