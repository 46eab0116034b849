"""Results on disk: arrays without pickle, settings beside them, every file written whole or not at all."""

import csv
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path beside the target to write to; put it in place when done, and leave nothing if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())  # or after a power cut the new name may stand for an empty file
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def check_folder(name: str, path: Path) -> None:
    """Refuse a path that cannot be a folder, before anything is computed for it."""
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise ValueError(f"{name} must be a folder, got {path}, where {part} is a file")


def claim(folder: Path, settings: Mapping[str, Any], overwrite: bool) -> None:
    """Refuse a folder of training, and one that holds the results of other settings, unless told to overwrite them."""
    check_folder("out", folder)
    if (folder / "settings.toml").exists():
        raise ValueError(f"out must not hold a training run, got {folder}; choose another")
    if (
        (folder / "reproduce.json").exists()
        or (folder / "runs").exists()
        or any(folder.glob("runs-*"))
    ):
        raise ValueError(f"out must not hold a reproduction, got {folder}; choose another")
    if overwrite or not (folder / "settings.json").exists():
        return
    if read_settings(folder) != json.loads(json.dumps(settings)):
        raise ValueError(
            f"out must not hold results of other settings, got {folder}; choose another or add --overwrite"
        )


def save(folder: Path, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write settings.json and results.npz; the settings come last, so that a folder with settings is complete."""
    (folder / "settings.json").unlink(missing_ok=True)
    save_arrays(folder / "results.npz", arrays)
    with atomic_write(folder / "settings.json") as draft:
        draft.write_text(json.dumps(settings, indent=2) + "\n")


def load(folder: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return settings and arrays of a folder that `save` wrote."""
    return read_settings(folder), load_arrays(folder / "results.npz")


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as one file without pickle."""
    strange = [name for name, value in arrays.items() if value.dtype.hasobject]
    if strange:
        raise ValueError(f"{path} cannot keep {strange[0]!r}, an array of objects")
    with atomic_write(path) as draft, draft.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # no array is named like its options


def load_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an npz file; anything else in it, or a damaged file, is refused by name."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, TypeError, zlib.error, zipfile.BadZipFile) as error:
        said = (
            "what is no array of numbers or words" if "pickle" in str(error) else error
        )  # not its advice to trust the file
        raise ValueError(f"{path} must be a results file of fedcohort, got: {said}") from None
    strange = [name for name, value in arrays.items() if not isinstance(value, np.ndarray)]
    if strange:
        raise ValueError(f"{path} must hold arrays alone, got {strange[0]!r}")
    return arrays


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a folder of results."""
    path = folder / "settings.json"
    try:
        settings = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be a settings file of fedcohort, got: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError(f"{path} must hold a table of settings, got {type(settings).__name__}")
    return settings


def save_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the keys of the first as header; no rows, an empty file."""
    with atomic_write(path) as draft, draft.open("w", newline="") as file:
        if rows:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
