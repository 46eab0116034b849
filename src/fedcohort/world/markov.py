"""The world `markov`: each client goes on and off by a chain of its own."""

from collections.abc import Iterator, Mapping

import numpy as np

from fedcohort.arrays import Bools, Floats
from fedcohort.checks import LARGEST_FLOAT, check_array
from fedcohort.rng import RngLike, as_rng, batch_shape
from fedcohort.world.base import Conditions, World
from fedcohort.world.classes import class_rates
from fedcohort.world.online import make_online_world, stays
from fedcohort.world.options import FAILURE, Option, read_options

LENGTHS = ("cycle", "on", "off")
DEFAULT_CYCLE = 50.0
OPTIONS = {
    "cycle": Option(None, low=2.0),
    "on": Option(None, low=1.0),
    "off": Option(None, low=1.0),
    "failure": FAILURE,
}
ROUNDING = 1e-9  # a length of one round may come out of the division as slightly less


def make_markov(conditions: Conditions) -> World:
    """Return a world of clients that go on and off, each online as often as its class says.

    Options: one of `cycle` (mean rounds of an on time and an off time together, default 50), `on`
    (mean rounds of an on time) and `off` (mean rounds of an off time); and `failure` (how often a
    client that is online fails nevertheless, default 0).
    """
    options = read_options("markov", conditions.options, OPTIONS)
    rates = class_rates(conditions.num_clients, conditions.rates)
    mean_on, mean_off = mean_lengths(rates, options)

    online = on_off(rates, mean_on, mean_off, list(conditions.seeds))
    failure = options["failure"]
    return make_online_world(
        conditions,
        online,
        success_rates=rates * (1 - failure),
        answers=stays(conditions, failure),
    )


def on_off(share: Floats, mean_on: Floats, mean_off: Floats, rng: RngLike) -> Iterator[Bools]:
    """Yield who is online, round after round: a two-state Markov chain per client.

    The first row is drawn from the chain's long-run law, so there is no run-in. On times and off
    times are geometric.

    Args:
        share: Share of the rounds in which each client is online [K]. 0 is never, 1 is always.
        mean_on: Mean length of an on time in rounds [K], at least 1.
        mean_off: Mean length of an off time in rounds [K], at least 1.
        rng: Seed or generator for one run, or a list of S seeds for S runs played together.

    Returns:
        An endless iterator of rows [K], or [S, K] for a list of seeds. The runs of a list are the
        same as each seed gives alone.

    Raises:
        ValueError: If a share lies outside [0, 1], or a mean length is below one round.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.markov import on_off
        >>> world = on_off(np.array([0.0, 1.0]), np.ones(2), np.ones(2), rng=0)
        >>> next(world).tolist()
        [False, True]
    """
    shape = (len(share),)
    check_array("share", share, shape, 0.0, 1.0)
    check_array("mean_on", mean_on, shape, 1.0, np.inf)
    check_array("mean_off", mean_off, shape, 1.0, np.inf)
    leaves = np.where(share < 1, 1 / mean_on, 0.0)
    returns = np.where(share > 0, 1 / mean_off, 0.0)
    return _walk(share, leaves, returns, rng)


def mean_lengths(share: Floats, options: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Return the mean lengths of on and off times [K] from one of the options for them.

    Args:
        share: Share of the rounds in which each client is online [K].
        options: At most one of `cycle`, `on` and `off`; without any, the default cycle.

    Raises:
        ValueError: If there are two of them, or a client would be on or off for less than a round
            or for ever.
    """
    given = [name for name in LENGTHS if name in options]
    if len(given) > 1:
        raise ValueError(
            f"world options must have one of {', '.join(LENGTHS)}, got {' and '.join(given)}"
        )
    name = given[0] if given else "cycle"
    value = options.get(name, DEFAULT_CYCLE)

    changes = (share > 0) & (share < 1)
    inside = np.where(changes, share, 0.5)  # clients that never change need no lengths
    parts = {"cycle": np.ones_like(inside), "on": inside, "off": 1 - inside}
    with np.errstate(over="ignore"):  # checked below
        cycle = np.where(changes, value / parts[name], 2.0)
    _check_finite(name, value, parts[name], cycle)
    _check_lengths(name, value, inside, cycle)
    mean_on = np.maximum(inside * cycle, 1.0)
    mean_off = np.maximum((1 - inside) * cycle, 1.0)
    return mean_on, mean_off


def _check_finite(name: str, value: float, part: Floats, cycle: Floats) -> None:
    """Refuse times that are too long for a number."""
    if np.isinf(cycle).any():
        most = LARGEST_FLOAT * part[np.isinf(cycle)].min()
        raise ValueError(
            f"world option {name} must be at most {most:g}, because on and off times of all "
            f"clients are finite, got {value:g}"
        )


def _check_lengths(name: str, value: float, share: Floats, cycle: Floats) -> None:
    """Refuse times below one round, which no chain of rounds can have."""
    shortest = np.minimum(share, 1 - share) * cycle
    client = int(shortest.argmin())
    if shortest[client] >= 1 - ROUNDING:
        return
    least = value / shortest[client]
    raise ValueError(
        f"world option {name} must be at least {least:g}, because clients that are online "
        f"{share[client]:g} of the time are on and off for a round or more, got {value:g}"
    )


def _walk(share: Floats, leaves: Floats, returns: Floats, rng: RngLike) -> Iterator[Bools]:
    source = as_rng(rng, "world")
    shape = (*batch_shape(source), len(share))
    is_on = source.random(shape) < share
    while True:
        yield is_on
        draws = source.random(shape)
        is_on = np.where(is_on, draws >= leaves, draws < returns)
