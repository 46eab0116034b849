"""Checks of a simulation: it fits the memory, and its world says who answers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.lab.config import SimulationConfig, open_world
from fedcohort.memory import check_memory
from fedcohort.world.registry import World


def check_simulation_memory(config: SimulationConfig) -> None:
    """Refuse a simulation whose results and selectors cannot fit the memory.

    Raises:
        ValueError: With the bytes needed and the bytes that there are.
    """
    values = len(config.selectors) * config.seeds * (3 * config.rounds + config.clients)
    values += 2 * config.seeds * config.clients  # weights and probabilities of a selector
    check_memory(
        "clients, seeds and rounds",
        f"{config.clients} clients, {config.seeds} seeds and {config.rounds} rounds "
        f"of {len(config.selectors)} selectors",
        needed=8 * values,
    )


def check_playable(config: SimulationConfig) -> None:
    """Refuse a simulation that does not fit the memory, or whose world cannot be played.

    Raises:
        ValueError: With the argument that must be another.
    """
    check_simulation_memory(config)
    check_has_answers(config, open_world(config, [config.first_seed]))


def check_has_answers(config: SimulationConfig, world: World) -> None:
    """Refuse a world of seconds, whether it says so itself or its file holds them."""
    if not world.has_seconds:
        return
    about = f"world {config.world!r} must say who answers (bool)"
    got = "seconds"
    if config.world_file is not None:
        about = "world_file must say who answers (0 or 1)"
        got = f"seconds in {config.world_file}"
    raise ValueError(
        f"{about} in a simulation, which has no deadline, got {got}; `compare` has a deadline"
    )


def check_are_answers(name: str, rows: Iterator[npt.NDArray[Any]]) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows; refuse seconds in a world that does not declare them."""
    for row in rows:
        if np.asarray(row).dtype.kind == "f":
            raise ValueError(
                f"world {name!r} must have rows of bools unless it sets has_seconds, got seconds"
            )
        yield row
