"""The one list of worlds, read by the command line, the laboratory and the tests."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.checks import check_array
from fedcohort.references import make_own, resolve
from fedcohort.world.base import Conditions, World
from fedcohort.world.bernoulli import make_bernoulli
from fedcohort.world.cyclic import make_cyclic
from fedcohort.world.devices import make_devices
from fedcohort.world.diurnal import make_diurnal
from fedcohort.world.drift import make_drift
from fedcohort.world.groups import make_groups
from fedcohort.world.interval_trace import make_trace
from fedcohort.world.labels import make_labels
from fedcohort.world.markov import make_markov
from fedcohort.world.recorded import make_recorded
from fedcohort.world.swap import make_swap

__all__ = ["WORLDS", "Conditions", "World", "make_world"]

WORLDS: dict[str, Callable[[Conditions], World]] = {
    "bernoulli": make_bernoulli,
    "markov": make_markov,
    "cyclic": make_cyclic,
    "diurnal": make_diurnal,
    "drift": make_drift,
    "swap": make_swap,
    "groups": make_groups,
    "labels": make_labels,
    "devices": make_devices,
    "recorded": make_recorded,
    "trace": make_trace,
}


def make_world(name: str, conditions: Conditions) -> World:
    """Return a new world by its name.

    Args:
        name: A key of `WORLDS`, a name that an installed package registers, or a reference such
            as "mine.py:night_shift" to a function from `Conditions` to a `World`.
        conditions: What the world is made from.

    Returns:
        The world: rows [S, K], one per round, and the success rates [K] or [S, K].

    Raises:
        ValueError: If there is no such world, or it cannot be made from these conditions.
        MissingData: If the world must know the clients' data or model and does not.

    Examples:
        >>> from fedcohort.world.registry import Conditions, make_world
        >>> conditions = Conditions(num_clients=4, seeds=[0, 1], rates=(0.0, 1.0))
        >>> world = make_world("bernoulli", conditions)
        >>> next(world.rows).tolist()
        [[False, False, True, True], [False, False, True, True]]
        >>> world.success_rates.tolist()
        [0.0, 0.0, 1.0, 1.0]
    """
    make = resolve("world", name, WORLDS)
    if name in WORLDS:
        world = WORLDS[name](conditions)
    else:
        world = make_own(f"world {name!r}", make, World, conditions)
        about = f"success_rates of the world {name!r}"
        rates = _check_rates(about, world.success_rates, conditions)
        world = replace(world, success_rates=rates)  # which may have been a list
    if conditions.knows_offline and world.available is None:
        raise ValueError(
            f"knows_offline must be false in the world {name!r}, whose clients are never offline "
            "for a while, got true"
        )
    return world


def _check_rates(name: str, rates: npt.ArrayLike, conditions: Conditions) -> Floats:
    """Return success rates as an array, and refuse those that are neither [K] nor [S, K]."""
    shape: tuple[int, ...] = (conditions.num_clients,)
    if np.ndim(rates) > 1:
        shape = (len(conditions.seeds), conditions.num_clients)
    return check_array(name, rates, shape, 0.0, 1.0)
