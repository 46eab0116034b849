"""The folder of a simulation: settings and results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcohort.files import (
    atomic_write,
    load_arrays,
    read_json_table,
    save_arrays,
    write_json,
)
from fedcohort.lab.folder.comparison import has_comparison
from fedcohort.lab.folder.flower import has_flower_run
from fedcohort.lab.folder.reproduction import has_reproduction
from fedcohort.lab.folder.shared import (
    Arrays,
    discard_allocations,
    find_difference,
    write_sources,
)
from fedcohort.lab.folder.target import check_empty, check_out

SIMULATION_SETTINGS = "settings.json"
SIMULATION_RESULTS = "results.npz"


def has_simulation(folder: Path) -> bool:
    """Return whether a folder holds a finished simulation."""
    return (folder / SIMULATION_SETTINGS).exists()


def holds_simulation(folder: Path, settings: Mapping[str, Any]) -> bool:
    """Return whether a folder holds the finished simulation of these settings."""
    if not has_simulation(folder):
        return False
    return read_simulation_settings(folder) == _as_stored(settings)


def check_simulation_folder(
    folder: Path, settings: Mapping[str, Any], overwrite: bool, may_hold_others: bool = False
) -> None:
    """Refuse a folder that a simulation with these settings must not use.

    Args:
        folder: The folder; it need not exist.
        settings: The settings that are wanted.
        overwrite: Whether results of other settings, and other files, may be replaced.
        may_hold_others: Whether files that are no simulation may be there.

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
        if not may_hold_others:
            check_empty(folder)
        return
    difference = find_difference(_as_stored(settings), read_simulation_settings(folder))
    if difference is not None:
        name, stored, wanted = difference
        raise ValueError(
            f"out must not hold results of other settings, got {folder} with {name} {stored}, "
            f"not {wanted}; choose another or add --overwrite"
        )


def _as_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they come back from a file."""
    stored: dict[str, Any] = json.loads(json.dumps(settings))
    return stored


def save_simulation(
    folder: Path,
    settings: Mapping[str, Any],
    arrays: Arrays,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Write the settings and the results of a simulation, and the digests of its sources."""
    (folder / SIMULATION_SETTINGS).unlink(missing_ok=True)
    discard_allocations(folder)  # those of the selectors that were here before
    write_sources(folder, sources or {})
    save_arrays(folder / SIMULATION_RESULTS, arrays)
    write_json(folder / SIMULATION_SETTINGS, settings)


def read_simulation_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a simulation as plain values."""
    return read_json_table(folder / SIMULATION_SETTINGS, "a settings file of fedcohort")


def load_simulation_results(folder: Path) -> Arrays:
    """Return the results of a simulation as named arrays."""
    return load_arrays(folder / SIMULATION_RESULTS)


def copy_simulation(source: Path, target: Path) -> None:
    """Copy the settings and the results of a simulation."""
    for name in (SIMULATION_RESULTS, SIMULATION_SETTINGS):
        with atomic_write(target / name) as draft:
            draft.write_bytes((source / name).read_bytes())
