"""The folder of a comparison: settings, digests of its inputs, records, cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.checks import LARGEST_FLOAT, check_range
from fedcohort.files import (
    load_arrays,
    read_toml,
    save_arrays,
    save_csv,
    to_toml,
    write_json,
    write_sealed_text,
)
from fedcohort.lab.folder.advice import has_advice
from fedcohort.lab.folder.checkpoint import (
    CHECKPOINT,
    PREVIOUS_CHECKPOINT,
    load_checkpoint,
)
from fedcohort.lab.folder.classes import CLASS_RATES
from fedcohort.lab.folder.shared import (
    ALLOCATIONS,
    ENVIRONMENT,
    SOURCES,
    WORLD_DIGEST,
    Arrays,
    check_digest,
    chunk_name,
    discard_chunks,
    read_digest,
    read_if_there,
    write_environment,
)
from fedcohort.lab.folder.update_memory import discard_memory

COMPARISON_SETTINGS = "settings.toml"
DATA_DIGEST = "data.sha256"
RECORDS = "records"
FIRST_ROUND = "first_round"  # of a chunk of records, beside the arrays
LABEL_COUNTS = "owners.npz"
CHECKPOINT_PARTS = ("round", "mode", "engine", "selectors")
SUMMARY = "summary.csv"
REPORT_PAGE = "report.html"
COST = "cost.json"
MLFLOW_RUNS = "mlflow.json"
COUNTED_COSTS = ("seconds", "timed_rounds", "client_steps")

# What a comparison is computed with and from, and what says how it ended: all of it goes when the
# comparison is discarded, or old results would stand beside a run that replaces it.
COMPARISON_FILES = (
    COMPARISON_SETTINGS,
    ENVIRONMENT,
    DATA_DIGEST,
    WORLD_DIGEST,
    SOURCES,
    CHECKPOINT,
    PREVIOUS_CHECKPOINT,
    LABEL_COUNTS,
    CLASS_RATES,
    SUMMARY,
    REPORT_PAGE,
)


def has_comparison(folder: Path) -> bool:
    """Return whether a comparison was begun in a folder."""
    return (folder / COMPARISON_SETTINGS).exists() and not has_advice(folder)


def write_settings(
    folder: Path, settings: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> None:
    """Write the settings of a comparison, and the environment it is computed with.

    Args:
        folder: The run folder.
        settings: The settings as plain values.
        environment: Versions and machine; None for those of this process.
    """
    write_environment(folder, environment)
    write_sealed_text(folder / COMPARISON_SETTINGS, to_toml(settings))


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a comparison as plain values."""
    return read_toml(settings_path(folder), is_sealed=True)


def settings_path(folder: Path) -> Path:
    """Return the path of a comparison's settings."""
    return folder / COMPARISON_SETTINGS


def write_data_digest(folder: Path, digest: str) -> None:
    """Write the digest of the samples that a comparison trains on."""
    write_sealed_text(folder / DATA_DIGEST, f"{digest}\n")


def read_data_digest(folder: Path) -> str | None:
    """Return the digest of the samples that a comparison was trained on, None if unknown."""
    return read_digest(folder / DATA_DIGEST)


def check_data_digest(folder: Path, digest: str) -> None:
    """Refuse to go on with samples other than those that a comparison was begun with."""
    check_digest(folder / DATA_DIGEST, digest, "dataset", "samples")


def save_label_counts(folder: Path, counts: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write how many samples of each label every client owns, [K, C] by partition."""
    save_arrays(folder / LABEL_COUNTS, counts)


def load_label_counts(folder: Path) -> Arrays:
    """Return the label counts [K, C] by partition, nothing if they were not written."""
    path = folder / LABEL_COUNTS
    return load_arrays(path) if path.exists() else {}


def save_records(folder: Path, first_round: int, records: Arrays) -> None:
    """Write the records of some rounds as one chunk, named by its first round.

    The chunk holds its first round, too, so that a chunk under another's name is noticed.
    """
    save_arrays(chunk_path(folder, first_round), {**records, FIRST_ROUND: np.array(first_round)})


def chunk_path(folder: Path, first_round: int) -> Path:
    """Return the path of the chunk of records that begins with a round."""
    return folder / RECORDS / chunk_name(first_round)


def load_chunk(path: Path) -> Arrays:
    """Return one chunk of records; every array has its rounds on the first axis.

    Raises:
        ValueError: If the arrays hold no rounds, or not equally many, or other rounds than those
            that the chunk is named by. Chunks of older versions do not say which they hold.
    """
    chunk = load_arrays(path)
    first_round = chunk.pop(FIRST_ROUND, None)
    if first_round is not None and not np.array_equal(first_round, int(path.stem)):
        raise ValueError(
            f"{path} must hold rounds from {int(path.stem)} on, got those from {first_round} on"
        )
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
        shapes = {chunk[name].shape[1:] for chunk in chunks}
        if len(shapes) > 1:
            raise ValueError(
                f"{folder / RECORDS} must hold {name} of one shape in all rounds, got {shapes}"
            )
        joined[name] = np.concatenate([chunk[name] for chunk in chunks])[:rounds]
    return joined


def save_summary(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table of a comparison as CSV."""
    save_csv(folder / SUMMARY, rows)


def read_cost(folder: Path) -> dict[str, Any]:
    """Return what a part of a reproduction took to compute, nothing if that is not known."""
    path = folder / COST
    cost = read_if_there(path, "the cost of a run, a table in JSON")
    if cost and not set(COUNTED_COSTS) & set(cost):  # another file, with a good checksum
        raise ValueError(f"{path} must be the cost of a run, got a table of {', '.join(cost)}")
    for name in COUNTED_COSTS:
        check_range(f"{name} in {path}", cost.get(name, 0), 0, LARGEST_FLOAT)
    return cost


def write_cost(folder: Path, cost: Mapping[str, Any]) -> None:
    """Write what a part of a reproduction took to compute."""
    write_json(folder / COST, cost)


def read_mlflow_runs(folder: Path) -> dict[str, str]:
    """Return the ids of the MLflow runs that a comparison is logged to, by name."""
    path = folder / MLFLOW_RUNS
    runs = read_if_there(path, "the ids of MLflow runs")
    for name, run in runs.items():
        if not isinstance(run, str):
            raise ValueError(f"{path} must hold the ids of MLflow runs, got {run!r} for {name}")
    return runs


def write_mlflow_runs(folder: Path, runs: Mapping[str, str]) -> None:
    """Write the ids of the MLflow runs that a comparison is logged to."""
    write_json(folder / MLFLOW_RUNS, runs)


def load_comparison_checkpoint(folder: Path) -> dict[str, Any] | None:
    """Return the checkpoint of a comparison; None if no round was played yet.

    Raises:
        ValueError: If the checkpoint is damaged, or missing although rounds were recorded.
    """
    state = load_checkpoint(folder, CHECKPOINT_PARTS)
    if state is None and any((folder / RECORDS).glob("[0-9]*.npz")):
        raise ValueError(
            f"{folder / CHECKPOINT} must be there to go on with the rounds in {folder / RECORDS}, "
            "got no such file; choose another folder, or move this one away to begin again"
        )
    return state


def discard_comparison(folder: Path) -> None:
    """Remove a comparison from a folder and leave everything else there."""
    for name in COMPARISON_FILES:
        (folder / name).unlink(missing_ok=True)
    discard_chunks(folder / RECORDS)
    discard_chunks(folder / ALLOCATIONS)
    discard_memory(folder)
