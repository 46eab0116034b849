"""The folder of a simulation: settings and results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcohort.files import load_arrays, read_json_table, save_arrays, write_json
from fedcohort.lab.folder.comparison import has_comparison
from fedcohort.lab.folder.flower import has_flower_run
from fedcohort.lab.folder.reproduction import has_reproduction
from fedcohort.lab.folder.shared import (
    ALLOCATIONS,
    ENVIRONMENT,
    SOURCES,
    WORLD_DIGEST,
    Arrays,
    discard_allocations,
    find_difference,
    holds_only,
    write_sources,
    write_world_digest,
)
from fedcohort.lab.folder.target import check_empty, check_out

SIMULATION_SETTINGS = "settings.json"
SIMULATION_RESULTS = "results.npz"


def has_simulation(folder: Path) -> bool:
    """Return whether a folder holds a finished simulation."""
    return (folder / SIMULATION_SETTINGS).exists()


def is_same_simulation(settings: Mapping[str, Any], stored: Mapping[str, Any] | None) -> bool:
    """Return whether stored settings are these, whichever version of fedcohort wrote them."""
    return stored is not None and comparable_settings(stored) == comparable_settings(settings)


def check_simulation_folder(
    folder: Path,
    settings: Mapping[str, Any],
    overwrite: bool,
    may_hold_others: bool = False,
    stored: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a folder that a simulation with these settings must not use.

    Args:
        folder: The folder; it need not exist.
        settings: The settings that are wanted.
        overwrite: Whether results of other settings, and other files, may be replaced.
        may_hold_others: Whether files that are no simulation may be there.
        stored: The settings in the folder, if they were read already.

    Raises:
        ValueError: If the path is a file, or the folder holds a comparison, a reproduction, a
            Flower run, advice or, unless it may be overwritten, something else or a simulation
            with other settings.
    """
    check_out(folder)
    if has_comparison(folder):
        raise ValueError(f"out must not hold a training run, got {folder}; choose another")
    if has_reproduction(folder):
        raise ValueError(f"out must not hold a reproduction, got {folder}; choose another")
    if has_flower_run(folder):
        raise ValueError(f"out must not hold a Flower run, got {folder}; choose another")
    if overwrite:
        return
    if not has_simulation(folder):
        if not may_hold_others and not _holds_unfinished(folder):
            check_empty(folder)
        return
    found = comparable_settings(stored or read_simulation_settings(folder))
    difference = find_difference(comparable_settings(settings), found)
    if difference is not None:
        name, there, wanted = difference
        raise ValueError(
            f"out must not hold results of other settings, got {folder} with {name} {there}, "
            f"not {wanted}; choose another or add --overwrite"
        )


def _holds_unfinished(folder: Path) -> bool:
    """Return whether a folder holds nothing but what a simulation wrote before it was killed."""
    own = {ENVIRONMENT}
    if (folder / ENVIRONMENT).exists():  # It is written first.
        own |= {ALLOCATIONS, SOURCES, WORLD_DIGEST, SIMULATION_RESULTS, SIMULATION_SETTINGS}
    return holds_only(folder, own)


def comparable_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON stores them, without the version: a release changes no setting."""
    values: dict[str, Any] = json.loads(json.dumps(settings))
    values.pop("version", None)
    return values


def discard_simulation(folder: Path) -> None:
    """Remove the settings of a simulation, without which it is unfinished, and allocations."""
    (folder / SIMULATION_SETTINGS).unlink(missing_ok=True)
    discard_allocations(folder)


def save_simulation(
    folder: Path,
    settings: Mapping[str, Any],
    arrays: Arrays,
    sources: Mapping[str, str] | None = None,
    world_digest: str | None = None,
) -> None:
    """Write the digests of a simulation's inputs, its results and, last, its settings.

    With its settings a folder counts as finished, so everything else is written before.

    Args:
        folder: The run folder.
        settings: The settings as plain values.
        arrays: The results.
        sources: The digests of sources of one's own, by reference.
        world_digest: The digest of the recorded world, None if there is none.
    """
    (folder / SIMULATION_SETTINGS).unlink(missing_ok=True)
    write_sources(folder, sources or {})
    write_world_digest(folder, world_digest)
    save_arrays(folder / SIMULATION_RESULTS, arrays)
    write_json(folder / SIMULATION_SETTINGS, settings)


def read_simulation_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a simulation as plain values."""
    return read_json_table(folder / SIMULATION_SETTINGS, "a settings file of fedcohort")


def load_simulation_results(folder: Path) -> Arrays:
    """Return the results of a simulation as named arrays."""
    return load_arrays(folder / SIMULATION_RESULTS)
