"""All that the program reads of a run folder, as one value that can be compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.cli.pages import load_findings
from fedcohort.cli.watch import draw_snapshot, print_snapshot
from fedcohort.lab import folder as run_folder
from fedcohort.lab.archive import gather_results
from fedcohort.lab.comparison import load_comparison
from fedcohort.lab.deployment import load_deployment
from fedcohort.lab.folder import Kind, detect_kind
from fedcohort.lab.progress import follow
from fedcohort.lab.simulation import load_simulation
from fedcohort.paper import page as reproduction


def read_folder(folder: Path) -> Any:
    """Return what a folder holds; its page and its progress are made too, and thrown away.

    Raises:
        ValueError: If the folder holds nothing of ours, or something is damaged.
    """
    load_findings(folder)
    kind = detect_kind(folder, reproduction.FOLDERS)
    if kind in (Kind.COMPARISON, Kind.FLOWER):
        snapshot = follow(folder).snapshot()
        print_snapshot(snapshot)
        draw_snapshot(snapshot)
    if kind is None:
        raise AssertionError(f"findings of a folder of no kind: {folder}")
    return plain(READERS[kind](folder))


def _read_comparison(folder: Path) -> Any:
    comparison = load_comparison(folder)
    return {
        "config": comparison.config.as_dict(),
        "records": comparison.records,
        "allocations": comparison.allocations,
        "owners": comparison.label_counts,
        "provenance": comparison.provenance,
    }


def _read_simulation(folder: Path) -> Any:
    simulation = load_simulation(folder)
    return {
        "settings": simulation.settings,
        "results": simulation.results,
        "allocations": simulation.allocations,
        "environment": simulation.environment,
    }


def _read_deployment(folder: Path) -> Any:
    deployment = load_deployment(folder)
    return {
        "rounds": list(deployment.rounds),
        "about": deployment.about,
        "environment": deployment.environment,
    }


def _read_reproduction(folder: Path) -> Any:
    simulations = {}
    for name in reproduction.FOLDERS:
        if run_folder.has_simulation(folder / name):
            simulations[name] = load_simulation(folder / name).results
        simulations[f"{name} exported"] = run_folder.read_exported(folder / name)
    return {
        "runs": gather_results(folder),
        "simulations": simulations,
        "request": run_folder.read_request(folder),
    }


READERS = {
    Kind.COMPARISON: _read_comparison,
    Kind.SIMULATION: _read_simulation,
    Kind.FLOWER: _read_deployment,
    Kind.REPRODUCTION: _read_reproduction,
}


def plain(value: Any) -> Any:
    """Return a nested value that `==` compares to the bit, NaN included."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return repr(value)
