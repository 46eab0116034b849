"""How settings are written: under which names, and which of them are left out."""

from dataclasses import asdict
from typing import Any

from fedcohort.lab.config_checks import DEFAULT_WORLD
from fedcohort.world.options import format_options, parse_options

SIMULATION_KEYS = {"clients": "num_clients", "cohort": "cohort_size"}  # in settings.json
# Settings that came later. They are left out where they have these values, so that settings files
# and the identity of runs are the same as before there were such settings.
LATER_SETTINGS = {
    "world": DEFAULT_WORLD,
    "world_file": None,
    "world_options": (),
    "knows_offline": False,
    "server_optimizer": "sgd",
    "memory_precision": "float32",
    "losses_every": 0,
}


def plain_settings(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration, without later ones that have their defaults."""
    values = asdict(config)
    for name, default in LATER_SETTINGS.items():
        if name in values and values[name] == default:
            del values[name]
    return values


def sort_world_options(config: Any) -> None:
    """Write the options of the world in one way, so that equal worlds have equal settings."""
    options = format_options(parse_options(config.world_options))
    object.__setattr__(config, "world_options", options)
