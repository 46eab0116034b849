"""What a run folder holds. Only this module knows the names and formats of its files.

    comparison     settings.toml, environment.json, data.sha256, records/, allocations/,
                   owners.npz, checkpoint.safetensors, summary.csv, mlflow.json;
                   world.sha256 if the world is recorded;
                   cost.json too in a part of a reproduction
    simulation     settings.json, results.npz, environment.json, allocations/
    reproduction   reproduce.json, runs/ with a comparison in each folder, runs-NAME.parquet,
                   and a folder for each artefact: a simulation, or its exported.json
    Flower run     run.json, rounds.jsonl, environment.json, checkpoint.safetensors

Every file is written whole or not at all, and records before the checkpoint that counts them.
A run killed at any moment goes on from its checkpoint; rounds beyond it are computed again, with
the same result. Settings are the last file of a simulation, so a folder with them is complete.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.files import (
    atomic_write,
    check_folder,
    load_arrays,
    load_state,
    read_json_lines,
    read_json_table,
    read_text,
    read_toml,
    save_arrays,
    save_csv,
    save_state,
    to_toml,
    write_json,
    write_text,
)
from fedcohort.files import locked as locked
from fedcohort.lab.environment import describe_environment

Arrays = dict[str, npt.NDArray[Any]]

COMPARISON_SETTINGS = "settings.toml"
ENVIRONMENT = "environment.json"
DATA_DIGEST = "data.sha256"
WORLD_DIGEST = "world.sha256"
RECORDS = "records"
ALLOCATIONS = "allocations"
LABEL_COUNTS = "owners.npz"
CHECKPOINT = "checkpoint.safetensors"
CHECKPOINT_PARTS = ("round", "mode", "engine", "selectors")  # of a comparison
SUMMARY = "summary.csv"
COST = "cost.json"
MLFLOW_RUNS = "mlflow.json"

# What a comparison is computed with and from: it goes when the comparison is discarded.
COMPARISON_FILES = (
    COMPARISON_SETTINGS,
    ENVIRONMENT,
    DATA_DIGEST,
    WORLD_DIGEST,
    CHECKPOINT,
    LABEL_COUNTS,
)

SIMULATION_SETTINGS = "settings.json"
SIMULATION_RESULTS = "results.npz"

REQUEST = "reproduce.json"
PARTS = "runs"
EXPORTED = "exported.json"
RESULTS_SUFFIXES = (".parquet", ".npz")

FLOWER_ABOUT = "run.json"
FLOWER_JOURNAL = "rounds.jsonl"
JOURNAL_KEYS = ("round", "seconds", "asked", "arrived", "success_ratio", "probabilities")


class Kind(Enum):
    """What wrote a folder."""

    COMPARISON = "comparison"
    SIMULATION = "simulation"
    FLOWER = "Flower run"
    REPRODUCTION = "reproduction"


def detect_kind(folder: Path, artefacts: Collection[str] = ()) -> Kind | None:
    """Return what wrote a folder, None if nothing of ours did.

    Args:
        folder: The folder; it need not exist.
        artefacts: Names of the paper's artefacts. A folder with a subfolder of such a name is a
            reproduction, even if nothing else says so.
    """
    if has_comparison(folder):
        return Kind.COMPARISON
    if has_simulation(folder):
        return Kind.SIMULATION
    if (folder / FLOWER_JOURNAL).exists() or (folder / FLOWER_ABOUT).exists():
        return Kind.FLOWER
    if has_reproduction(folder, artefacts):
        return Kind.REPRODUCTION
    return None


def has_comparison(folder: Path) -> bool:
    """Return whether a comparison was begun in a folder."""
    return (folder / COMPARISON_SETTINGS).exists()


def has_simulation(folder: Path) -> bool:
    """Return whether a folder holds a finished simulation."""
    return (folder / SIMULATION_SETTINGS).exists()


def has_reproduction(folder: Path, artefacts: Collection[str] = ()) -> bool:
    """Return whether a folder holds something that was reproduced."""
    if (folder / REQUEST).exists() or any(folder.glob(f"{PARTS}-*")):
        return True
    return any((folder / name).is_dir() for name in (*artefacts, PARTS))


# --- Any run -------------------------------------------------------------------------------


def write_environment(folder: Path) -> None:
    """Write the versions and the machine that a run is computed with."""
    write_json(folder / ENVIRONMENT, describe_environment())


def read_environment(folder: Path) -> dict[str, str]:
    """Return the versions and the machine of a run, nothing if they were not written."""
    stored = _read_if_there(folder / ENVIRONMENT, "the environment of a run, a table in JSON")
    return {name: str(value) for name, value in stored.items()}


def save_checkpoint(folder: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state of arrays and plain values as the folder's checkpoint."""
    save_state(folder / CHECKPOINT, state)


def load_checkpoint(folder: Path, names: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the state of the checkpoint, None if there is none.

    Args:
        folder: The run folder.
        names: Names that the state must hold.

    Raises:
        ValueError: If the checkpoint is damaged or lacks one of the names.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    return load_state(path, names)


def save_allocations(folder: Path, first_round: int, arrays: Arrays) -> None:
    """Write the probabilities that were recorded since a round."""
    save_arrays(folder / ALLOCATIONS / _chunk_name(first_round), arrays)


def load_allocations(folder: Path) -> Iterator[tuple[Path, Arrays]]:
    """Yield the recorded probabilities, chunk by chunk, each with its path."""
    for path in sorted((folder / ALLOCATIONS).glob("[0-9]*.npz")):
        yield path, load_arrays(path)


def discard_allocations(folder: Path) -> None:
    """Remove all recorded probabilities."""
    _discard_chunks(folder / ALLOCATIONS)


# --- Comparison ----------------------------------------------------------------------------


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of a comparison, and the environment it is computed with."""
    write_text(folder / COMPARISON_SETTINGS, to_toml(settings))
    write_environment(folder)


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a comparison as plain values."""
    return read_toml(settings_path(folder))


def settings_path(folder: Path) -> Path:
    """Return the path of a comparison's settings."""
    return folder / COMPARISON_SETTINGS


def write_data_digest(folder: Path, digest: str) -> None:
    """Write the digest of the samples that a comparison trains on."""
    write_text(folder / DATA_DIGEST, f"{digest}\n")


def read_data_digest(folder: Path) -> str | None:
    """Return the digest of the samples that a comparison was trained on, None if unknown."""
    path = folder / DATA_DIGEST
    if not path.exists():
        return None
    return read_text(path).strip()


def check_data_digest(folder: Path, digest: str) -> None:
    """Refuse to go on with samples other than those that a comparison was begun with."""
    if read_data_digest(folder) not in (None, digest):
        raise ValueError(
            f"dataset must be what the run in {folder} was begun with, got other samples; "
            "choose another folder"
        )


def write_world_digest(folder: Path, digest: str) -> None:
    """Write the digest of the recorded world that a comparison plays."""
    write_text(folder / WORLD_DIGEST, f"{digest}\n")


def check_world_digest(folder: Path, digest: str) -> None:
    """Refuse to go on in a recorded world other than the one that a comparison was begun in."""
    path = folder / WORLD_DIGEST
    if path.exists() and read_text(path).strip() != digest:
        raise ValueError(
            f"world_file must be what the run in {folder} was begun with, got other rounds; "
            "choose another folder"
        )


def save_label_counts(folder: Path, counts: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write how many samples of each label every client owns, [K, C] by partition."""
    save_arrays(folder / LABEL_COUNTS, counts)


def load_label_counts(folder: Path) -> Arrays:
    """Return the label counts [K, C] by partition, nothing if they were not written."""
    path = folder / LABEL_COUNTS
    return load_arrays(path) if path.exists() else {}


def save_records(folder: Path, first_round: int, records: Arrays) -> None:
    """Write the records of some rounds as one chunk, named by its first round."""
    save_arrays(chunk_path(folder, first_round), records)


def chunk_path(folder: Path, first_round: int) -> Path:
    """Return the path of the chunk of records that begins with a round."""
    return folder / RECORDS / _chunk_name(first_round)


def load_chunk(path: Path) -> Arrays:
    """Return one chunk of records; every array has its rounds on the first axis.

    Raises:
        ValueError: If the arrays hold no rounds, or not equally many.
    """
    chunk = load_arrays(path)
    lengths = {name: len(values) if values.ndim else 0 for name, values in chunk.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(
            f"{path} must hold the same rounds, at least one, of everything recorded, got {lengths}"
        )
    return chunk


def load_records(folder: Path, rounds: int | None = None) -> Arrays:
    """Return the records of all chunks, joined along the rounds.

    Args:
        folder: The run folder.
        rounds: How many rounds to return. None returns all rounds up to the first gap.

    Returns:
        Arrays [T, ...] by name; nothing if there are no records.

    Raises:
        ValueError: If a chunk is damaged, or there are fewer rounds than asked for.
    """
    chunks: list[Arrays] = []
    done = 0
    for path in sorted((folder / RECORDS).glob("[0-9]*.npz")):
        has_enough = rounds is not None and done >= rounds
        if has_enough or not path.stem.isdecimal() or int(path.stem) != done:
            continue  # left by a run that was killed before its checkpoint
        chunk = load_chunk(path)
        if chunks and chunk.keys() != chunks[0].keys():
            raise ValueError(
                f"{path} must hold {', '.join(chunks[0])} as the rounds before, "
                f"got {', '.join(chunk)}"
            )
        chunks.append(chunk)
        done += len(next(iter(chunk.values())))

    if rounds is not None and done < rounds:
        raise ValueError(
            f"{folder / RECORDS} must hold rounds 0 to {rounds - 1}, got {done} of them"
        )
    if not chunks:
        return {}
    joined = {}
    for name in chunks[0]:
        joined[name] = np.concatenate([chunk[name] for chunk in chunks])[:rounds]
    return joined


def save_summary(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table of a comparison as CSV."""
    save_csv(folder / SUMMARY, rows)


def read_cost(folder: Path) -> dict[str, Any]:
    """Return what a part of a reproduction took to compute, nothing if that is not known."""
    return _read_if_there(folder / COST, "the cost of a run, a table in JSON")


def write_cost(folder: Path, cost: Mapping[str, Any]) -> None:
    """Write what a part of a reproduction took to compute."""
    write_json(folder / COST, cost)


def read_mlflow_runs(folder: Path) -> dict[str, str]:
    """Return the ids of the MLflow runs that a comparison is logged to, by name."""
    return _read_if_there(folder / MLFLOW_RUNS, "the ids of MLflow runs")


def write_mlflow_runs(folder: Path, runs: Mapping[str, str]) -> None:
    """Write the ids of the MLflow runs that a comparison is logged to."""
    write_json(folder / MLFLOW_RUNS, runs)


def discard_comparison(folder: Path) -> None:
    """Remove a comparison from a folder and leave everything else there."""
    for name in COMPARISON_FILES:
        (folder / name).unlink(missing_ok=True)
    _discard_chunks(folder / RECORDS)
    _discard_chunks(folder / ALLOCATIONS)


# --- Simulation ----------------------------------------------------------------------------


def check_simulation_folder(folder: Path, settings: Mapping[str, Any], overwrite: bool) -> None:
    """Refuse a folder that a simulation with these settings must not use.

    Raises:
        ValueError: If the path is a file, or the folder holds a comparison, a reproduction or,
            unless it may be overwritten, a simulation with other settings.
    """
    check_folder("out", folder)
    if has_comparison(folder):
        raise ValueError(f"out must not hold a training run, got {folder}; choose another")
    if has_reproduction(folder):
        raise ValueError(f"out must not hold a reproduction, got {folder}; choose another")
    if overwrite or not has_simulation(folder):
        return
    if read_simulation_settings(folder) != json.loads(json.dumps(settings)):
        raise ValueError(
            f"out must not hold results of other settings, got {folder}; "
            "choose another or add --overwrite"
        )


def save_simulation(folder: Path, settings: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the settings and the results of a simulation."""
    (folder / SIMULATION_SETTINGS).unlink(missing_ok=True)
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


# --- Reproduction --------------------------------------------------------------------------


def write_request(folder: Path, request: Mapping[str, Any]) -> None:
    """Write what a reproduction was asked for, so that its page can be drawn again."""
    write_json(folder / REQUEST, request)


def read_request(folder: Path) -> dict[str, Any]:
    """Return what a reproduction was asked for, nothing if that is not known."""
    return _read_if_there(folder / REQUEST, "the request of a reproduction")


def parts_folder(folder: Path) -> Path:
    """Return the folder in which a reproduction keeps its comparisons."""
    return folder / PARTS


def find_results(folder: Path) -> Iterator[Path]:
    """Yield comparison folders and results files at any depth, in order of their paths."""
    for path in sorted(folder.rglob("*")):
        if path.name == COMPARISON_SETTINGS:
            yield path.parent
        elif path.suffix in RESULTS_SUFFIXES and path.name.startswith(PARTS):
            yield path


def results_path(folder: Path, dataset: str, suffix: str) -> Path:
    """Return the path of the compact results of all runs on one data set."""
    return folder / f"{PARTS}-{dataset}{suffix}"


def write_exported(folder: Path, exported: Mapping[str, Any]) -> None:
    """Write what is kept of a simulation whose curves are too long to export."""
    write_json(folder / EXPORTED, exported, indent=None)


def read_exported(folder: Path) -> dict[str, Any]:
    """Return what `write_exported` kept of a simulation, nothing if there is nothing."""
    path = folder / EXPORTED
    exported = _read_if_there(path, "exported by fedcohort")
    if not exported:
        return {}
    for name, kind in {"settings": dict, "rows": list, "room": dict}.items():
        if not isinstance(exported.get(name), kind):
            raise ValueError(
                f"{path} must hold tables settings and room and a list rows, "
                f"got {', '.join(exported)}"
            )
    if not all(isinstance(row, dict) for row in exported["rows"]):
        raise ValueError(f"{path} must hold rows that are tables, got others")
    return exported


# --- Flower run ----------------------------------------------------------------------------


def journal_path(folder: Path) -> Path:
    """Return the path of a Flower run's journal."""
    return folder / FLOWER_JOURNAL


def load_journal(folder: Path) -> list[dict[str, Any]]:
    """Return the rounds of a Flower run; a last line that is still being written is left out."""
    return read_json_lines(journal_path(folder), "the journal of a Flower run", JOURNAL_KEYS)


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what a Flower run says about itself when it begins."""
    write_json(folder / FLOWER_ABOUT, about)


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a Flower run said about itself when it began, nothing if it did not."""
    return _read_if_there(folder / FLOWER_ABOUT, "written by a Flower run")


def _read_if_there(path: Path, purpose: str) -> dict[str, Any]:
    return read_json_table(path, purpose) if path.exists() else {}


def _chunk_name(first_round: int) -> str:
    return f"{first_round:07d}.npz"


def _discard_chunks(folder: Path) -> None:
    for path in folder.glob("*.npz"):
        path.unlink()
