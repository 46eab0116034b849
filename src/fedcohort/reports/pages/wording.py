"""Sentences that several pages share."""

from collections.abc import Sequence

from fedcohort.lab.config import Config, has_classes
from fedcohort.lab.config_checks import DEFAULT_WORLD
from fedcohort.references import is_reference, short_label
from fedcohort.reports.words import exact_percent


def list_seeds(first_seed: int, count: int) -> str:
    """Return which seeds were played: "3", or "0 to 9".

    Args:
        first_seed: The first of them.
        count: How many there are.
    """
    if count == 1:
        return str(first_seed)
    return f"{first_seed} to {first_seed + count - 1}"


def list_rates(rates: Sequence[float]) -> str:
    """Return the success rates of the classes in percent.

    Args:
        rates: Success rate of each class.
    """
    return ", ".join(exact_percent(rate) for rate in rates)


def describe_failures(config: Config) -> str:
    """Return how clients fail, as a sentence without its full stop."""
    if is_reference(config.world):
        return f"Clients fail as the world {short_label(config.world)} says"
    if config.world_file is not None:
        return f"Clients fail as recorded in {config.world_file}"
    world = ""
    if config.world != DEFAULT_WORLD:
        world = f" (world {', '.join([config.world, *config.world_options])})"
    if not has_classes(config):
        return f"Clients fail{world or ' by themselves'}"
    rates = list_rates(config.rates)
    if world:
        return f"Clients fail{world}: the rates of their classes are {rates}"
    return f"Clients fail: by class, they answer {rates} of the time"
