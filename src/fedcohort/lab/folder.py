"""A training run on disk: settings (TOML), records in chunks (npz), one checkpoint (safetensors with JSON inside), environment.

Records of the rounds since the last checkpoint are written first, the checkpoint last, each file whole or not at all: killed at
any moment, the folder goes on from its checkpoint, and records beyond it are computed again, the same.
"""

import json
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.files import atomic_write, load_arrays, save_arrays

Arrays = dict[str, npt.NDArray[Any]]
DATA = "data.sha256"
PACKAGES = ("numpy", "torch", "safetensors", "scikit-learn", "flwr")


@contextmanager
def locked(folder: Path, name: str = "out") -> Iterator[None]:
    """Keep a folder from other processes for a while; the system lets go of it when a process ends, however it ends."""
    try:
        import fcntl
    except ModuleNotFoundError:  # no such locks on Windows
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{name} must not be in use by another process, got {folder}"
            ) from None
        yield
    finally:
        os.close(place)


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write settings.toml and what the run is computed with."""
    with atomic_write(folder / "settings.toml") as draft:
        draft.write_text(to_toml(settings))
    write_environment(folder)


def write_environment(folder: Path) -> None:
    """Write what a run is computed with."""
    with atomic_write(folder / "environment.json") as draft:
        draft.write_text(json.dumps(environment(), indent=2) + "\n")


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} must be a settings file in TOML, got: {error}") from None


def write_data(folder: Path, digest: str) -> None:
    """Write down on which data a run is trained."""
    with atomic_write(folder / DATA) as draft:
        draft.write_text(f"{digest}\n")


def check_data(folder: Path, digest: str) -> None:
    """Refuse to go on with a run that was begun with other data, such as a file that has changed since."""
    path = folder / DATA
    if path.exists() and path.read_text().strip() != digest:
        raise ValueError(
            f"dataset must be what the run in {folder} was begun with, got other samples; choose another folder"
        )


def to_toml(settings: Mapping[str, Any]) -> str:
    """Return flat settings as TOML; None is left out."""
    return "".join(
        f"{name} = {_toml(value)}\n" for name, value in settings.items() if value is not None
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(part) for part in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def environment() -> dict[str, str]:
    """Return versions and machine: results are bit-identical on the same ones."""
    own = sys.modules[
        "fedcohort"
    ].__version__  # as it runs: what is installed may be another, or nothing
    found = {"python": platform.python_version(), "machine": platform.platform(), "fedcohort": own}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "-"
    return found | {"commit": commit_of(Path(__file__))}


def commit_of(file: Path) -> str:
    """Return the commit a file belongs to, with a + if the files beside it were changed since; "-" where git cannot say."""

    def git(*args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["git", "-C", str(file.parent), *args], capture_output=True, text=True, check=False
        )

    try:
        if git(
            "ls-files", "--error-unmatch", file.name
        ).returncode:  # in no repository, or in one that does not know it
            return "-"
        commit = git("rev-parse", "HEAD")
        changed = git("diff", "--quiet", "HEAD", "--", ".").returncode
    except OSError:
        return "-"
    return "-" if commit.returncode else commit.stdout.strip()[:12] + ("+" if changed else "")


def discard(folder: Path) -> None:
    """Remove a run from a folder and leave everything else there."""
    for name in ("settings.toml", "environment.json", DATA, "checkpoint.safetensors", "owners.npz"):
        (folder / name).unlink(missing_ok=True)
    for part in ("records", "allocations"):
        discard_arrays(folder / part)


def discard_arrays(folder: Path) -> None:
    """Remove the chunks of a folder."""
    for path in folder.glob("*.npz"):
        path.unlink()


def save_records(folder: Path, first_round: int, records: Arrays) -> None:
    """Write the records of some rounds as one chunk, named by its first round."""
    save_arrays(folder / "records" / f"{first_round:07d}.npz", records)


def load_records(folder: Path, rounds: int | None = None) -> Arrays:
    """Return the records of the first rounds, or of all up to a gap, all chunks joined; fewer than asked are refused."""
    chunks, have = [], 0
    for path in sorted((folder / "records").glob("[0-9]*.npz")):
        if (
            not path.stem.isdecimal()
            or int(path.stem) != have
            or (rounds is not None and have >= rounds)
        ):
            continue  # left by a run that was killed before its checkpoint
        chunks.append(load_arrays(path))
        check_chunk(chunks[-1], path)
        if chunks[-1].keys() != chunks[0].keys():
            raise ValueError(
                f"{path} must hold {', '.join(chunks[0])} as the rounds before, got {', '.join(chunks[-1])}"
            )
        have += len(next(iter(chunks[-1].values())))
    if rounds is not None and have < rounds:
        raise ValueError(
            f"{folder / 'records'} must hold rounds 0 to {rounds - 1}, got {have} of them"
        )
    return (
        {name: np.concatenate([chunk[name] for chunk in chunks])[:rounds] for name in chunks[0]}
        if chunks
        else {}
    )


def check_chunk(chunk: Arrays, path: Path) -> None:
    """Refuse a chunk that does not hold the same rounds of everything, or none."""
    lengths = {name: len(values) if values.ndim else 0 for name, values in chunk.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(
            f"{path} must hold the same rounds, at least one, of everything recorded, got {lengths}"
        )


def load_journal(folder: Path) -> list[dict[str, Any]]:
    """Return the rounds of a Flower run, as its journal has them; a last line that is still being written is left out."""
    path = folder / "rounds.jsonl"
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be the journal of a Flower run, got: {error}") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            rows.append(
                {
                    name: row[name]
                    for name in (
                        "round",
                        "seconds",
                        "asked",
                        "arrived",
                        "success_ratio",
                        "probabilities",
                    )
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            if number < len(lines):
                raise ValueError(
                    f"{path} must hold one round per line, got line {number}: {error!r}"
                ) from None
    return rows


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a Flower run said of itself when it began; nothing if it did not."""
    path = folder / "run.json"
    try:
        about = json.loads(path.read_text()) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be written by a Flower run, got: {error}") from None
    return about if isinstance(about, dict) else {}


def save_checkpoint(folder: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state of arrays and plain values as one safetensors file; nothing in it can run code."""
    from safetensors.numpy import save_file

    arrays: Arrays = {}
    plain = _take_arrays(state, "", arrays)
    with atomic_write(folder / "checkpoint.safetensors") as draft:
        save_file(arrays, str(draft), metadata={"state": json.dumps(plain)})


def load_checkpoint(folder: Path, names: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the state of the last checkpoint, None if there is none; a damaged one, or one without these names, is refused."""
    from safetensors import SafetensorError, safe_open

    path = folder / "checkpoint.safetensors"
    if not path.exists():
        return None
    try:
        with safe_open(str(path), framework="numpy") as file:
            plain = json.loads(file.metadata()["state"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        state: dict[str, Any] = {name: _put_arrays(part, arrays) for name, part in plain.items()}
        if not set(names) <= set(state):
            raise TypeError(f"a state of {', '.join(state) or 'nothing'}")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} must be a checkpoint of fedcohort, got: {error}") from None
    return state


def _take_arrays(value: Any, name: str, arrays: Arrays) -> Any:
    """Return the value with arrays moved out and replaced by their names."""
    if isinstance(value, Mapping):
        return {key: _take_arrays(part, f"{name}/{key}", arrays) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        unique = f"{len(arrays)}{name}"
        arrays[unique] = np.array(value, order="C")
        return {
            "array": unique,
            "in": "safetensors",
        }  # two keys, so that no state can be mistaken for it
    return value


def _put_arrays(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array", "in"} and value["in"] == "safetensors":
            return arrays[value["array"]]
        return {key: _put_arrays(part, arrays) for key, part in value.items()}
    return value
