"""The results of a simulation as named arrays: how a folder stores, loads and checks them."""

from pathlib import Path

from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation_result import SimulationResult

Results = dict[str, SimulationResult]
RESULT_FIELDS = ("successes", "answering", "expected", "counts")
Shapes = dict[str, tuple[int, int]]  # rounds and clients of each result, by name


def load_results(folder: Path) -> Results:
    """Return the results that a folder holds, by name.

    Raises:
        ValueError: If an array of a result is missing.
    """
    arrays = run_folder.load_simulation_results(folder)
    results: Results = {}
    for name in dict.fromkeys(key.rpartition("/")[0] for key in arrays):
        try:
            parts = {field: arrays[f"{name}/{field}"] for field in RESULT_FIELDS}
        except KeyError as error:
            raise ValueError(f"{folder} must hold results of fedcohort, got: {error}") from None
        results[name] = SimulationResult(**parts, asked=arrays.get(f"{name}/asked"))
    return results


def check_shapes(folder: Path, config: SimulationConfig, results: Results, shapes: Shapes) -> None:
    """Refuse results of other selectors, seeds, rounds or clients than the settings say."""
    for name, (rounds, clients) in shapes.items():
        if name not in results:
            held = ", ".join(results) or "nothing"
            raise ValueError(f"{folder} must hold results of {name}, got those of {held}")
        found = {field: getattr(results[name], field).shape for field in RESULT_FIELDS}
        expected = dict.fromkeys(RESULT_FIELDS, (config.seeds, rounds))
        expected["counts"] = (config.seeds, clients)
        if found != expected:
            raise ValueError(
                f"{folder} must hold {config.seeds} seeds, {rounds} rounds and {clients} clients "
                f"of {name}, got {found}"
            )


def as_arrays(results: Results) -> run_folder.Arrays:
    """Return results as named arrays, as a folder stores them."""
    arrays = {}
    for name, result in results.items():
        for field in RESULT_FIELDS:
            arrays[f"{name}/{field}"] = getattr(result, field)
        if result.asked is not None:
            arrays[f"{name}/asked"] = result.asked
    return arrays
