"""What a run folder holds of a comparison: its settings, and what was recorded of each round, refused if it cannot be that."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedcohort.files import load_arrays
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig, run_keys

BY_RUN = ("accuracy", "loss", "seconds", "wasted_seconds", "wasted_bytes")  # [T, runs]
BY_CLIENT = ("clients", "arrived", "valid")  # [T, runs, k]
OFFICIAL = "official_accuracy"  # [T, runs], if it was asked for


def read_config(folder: Path) -> ComparisonConfig:
    """Return the settings of a run; a file that does not name them all is no longer what the run wrote."""
    path = folder / "settings.toml"
    given = rundir.read_settings(path)
    missing = [
        one.name
        for one in fields(ComparisonConfig)
        if one.default is not None and one.name not in given
    ]
    if missing:
        raise ValueError(
            f"{path} must name every setting of its run, got none of {', '.join(missing)}"
        )
    try:
        return ComparisonConfig.from_dict(given)
    except ValueError as error:
        raise ValueError(f"{path} must hold the settings of a run, got: {error}") from None


def read_records(folder: Path, of: ComparisonConfig, rounds: int | None = None) -> rundir.Arrays:
    """Return the records of the first rounds, or of all there are; nothing if there are none."""
    records = rundir.load_records(folder, rounds)
    if records:
        check(of, records, folder / "records")
    return records


def read_chunk(path: Path, of: ComparisonConfig) -> rundir.Arrays:
    """Return the records of one chunk."""
    chunk = load_arrays(path)
    rundir.check_chunk(chunk, path)
    check(of, chunk, path)
    return chunk


def check(of: ComparisonConfig, records: Mapping[str, Any], where: Path) -> None:
    """Refuse records that are not of as many runs and clients, each of every kind."""
    runs = len(run_keys(of))
    shapes = dict.fromkeys((*BY_RUN, OFFICIAL), (runs,)) | dict.fromkeys(
        BY_CLIENT, (runs, of.cohort)
    )
    for name, shape in shapes.items():
        if name not in records and name != OFFICIAL:
            raise ValueError(f"{where} must hold {name} of every round, got {', '.join(records)}")
        found = records.get(name)
        if found is not None and (found.shape[1:] != shape or found.dtype.kind not in "biuf"):
            raise ValueError(
                f"{where} must hold {name} as numbers of shape {shape} in every round, got {found.dtype} of {found.shape[1:]}"
            )
    clients = records["clients"]
    if clients.dtype.kind not in "iu" or clients.min() < 0 or clients.max() >= of.clients:
        raise ValueError(
            f"{where} must hold clients from 0 to {of.clients - 1}, got {clients.min()} to {clients.max()}"
        )
