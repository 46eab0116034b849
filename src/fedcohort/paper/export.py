"""Compact copies of results, small enough to commit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.checks import check_choice
from fedcohort.files import check_folder
from fedcohort.lab import folder as run_folder
from fedcohort.lab.archive import gather_results, merge_results, save
from fedcohort.lab.result import Result
from fedcohort.lab.simulation import Simulation
from fedcohort.lab.simulation_arrays import as_arrays
from fedcohort.paper import theorem
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.results import Results
from fedcohort.paper.simulations import SimulationSpec

SUFFIXES = (".parquet", ".npz")


def read_export(target: Path) -> list[Result]:
    """Return the runs that a folder of exported results holds already.

    Args:
        target: Folder to export to; it need not exist.

    Raises:
        ValueError: If the path is a file, or a file of results in it is damaged.
    """
    check_folder("export", target)
    return gather_results(target)


def export(
    results: Results,
    target: Path,
    suffix: str = ".parquet",
    held: Sequence[Result] | None = None,
) -> list[Path]:
    """Write results as one small file per data set, and simulations.

    Runs that the target holds already stay, unless the results have more rounds of them, or
    their losses of clients. The curves of the regret are long: their table and their last values
    are written instead.

    Args:
        results: What to export.
        target: Folder to write to.
        suffix: .parquet, or .npz where there is no pyarrow. Both can be read back.
        held: Runs that the target holds, if they were read already.

    Returns:
        The paths of the files of runs.

    Raises:
        ValueError: If the target holds simulations of other settings. Nothing is written then.
    """
    check_choice("ending", suffix, SUFFIXES)
    source = results.source
    if source is None or not source.is_dir():
        raise ValueError(f"out must be a folder of results, got {source}")
    if held is None:
        held = read_export(target)
    by_dataset: dict[str, list[Result]] = {}
    for run in merge_results(held, results.runs, target=target):  # of equals, the first
        by_dataset.setdefault(Path(run.config.dataset).stem, []).append(run)

    if source != target:
        _export_simulations(results, target)
    paths = []
    held_ids = {id(run) for run in held}
    for dataset, runs in sorted(by_dataset.items()):
        path = run_folder.results_path(target, dataset, suffix)
        is_held = path.exists() and all(id(run) in held_ids for run in runs)
        if not is_held:
            save(path, runs)
        paths.append(path)
    return paths


def _export_simulations(results: Results, target: Path) -> None:
    """Write the simulations that the target does not hold, under the names of their folders."""
    missing: dict[str, Simulation] = {}
    for artefact in ARTEFACTS.values():
        spec = artefact.simulation
        if spec is None:
            continue
        simulation = results.simulation(spec, artefact.name)
        if simulation is None:
            continue
        held = _held_settings(spec, artefact.name, target)
        if held is None:
            missing[simulation.folder.name] = simulation
        elif _comparable(held) != _comparable(simulation.settings):
            raise ValueError(
                f"export must not be a folder that holds {spec.name} of other settings, "
                f"got {target}; choose another"
            )

    for name, simulation in missing.items():
        if name == theorem.SIMULATION.name:
            run_folder.write_exported(target / name, theorem.export_summary(simulation))
        else:
            arrays = as_arrays(simulation.results)
            run_folder.save_simulation(target / name, simulation.settings, arrays)


def _held_settings(spec: SimulationSpec, artefact: str, target: Path) -> Mapping[str, Any] | None:
    """Return the settings of a simulation that the target holds, or None."""
    folder = spec.find(target, artefact)
    if folder is not None:
        return run_folder.read_simulation_settings(folder)
    exported = run_folder.read_exported(target / spec.name)
    if exported:
        settings: Mapping[str, Any] = exported["settings"]
        return settings
    return None


def _comparable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings to compare, without the name of their folder."""
    values = run_folder.comparable_settings(settings)
    values.pop("experiment", None)
    return values
