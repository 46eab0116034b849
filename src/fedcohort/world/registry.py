"""The one list of worlds, read by the command line, the laboratory and the tests."""

from collections.abc import Callable

from fedcohort.checks import check_array
from fedcohort.references import make_own, resolve
from fedcohort.world.base import Conditions, World
from fedcohort.world.bernoulli import make_bernoulli
from fedcohort.world.recorded import make_recorded

__all__ = ["WORLDS", "Conditions", "World", "make_world"]

WORLDS: dict[str, Callable[[Conditions], World]] = {
    "bernoulli": make_bernoulli,
    "recorded": make_recorded,
}


def make_world(name: str, conditions: Conditions) -> World:
    """Return a new world by its name.

    Args:
        name: A key of `WORLDS`, a name that an installed package registers, or a reference such
            as "mine.py:night_shift" to a function from `Conditions` to a `World`.
        conditions: What the world is made from.

    Returns:
        The world: rows [S, K], one per round, and the success rates [K].

    Raises:
        ValueError: If there is no such world, or it cannot be made from these conditions.

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
        return WORLDS[name](conditions)
    world = make_own(f"world {name!r}", make, World, conditions)
    shape = (conditions.num_clients,)
    check_array(f"success_rates of the world {name!r}", world.success_rates, shape, 0.0, 1.0)
    return world
