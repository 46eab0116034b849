"""What every run folder may hold: environment, recorded probabilities, digests of inputs."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fedcohort.files import (
    is_draft,
    load_arrays,
    read_json_table,
    read_sealed_text,
    save_arrays,
    write_json,
    write_sealed_text,
)
from fedcohort.lab.environment import describe_environment

Arrays = dict[str, npt.NDArray[Any]]

ENVIRONMENT = "environment.json"
ALLOCATIONS = "allocations"
SOURCES = "sources.json"
WORLD_DIGEST = "world.sha256"
DIGEST = re.compile(r"[0-9a-f]{64}")


def write_environment(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Write the versions and the machine that a run is computed with; None for those here."""
    if environment is None:
        environment = describe_environment()
    write_json(folder / ENVIRONMENT, environment)


def read_environment(folder: Path) -> dict[str, str]:
    """Return the versions and the machine of a run, nothing if they were not written."""
    path = folder / ENVIRONMENT
    stored = read_if_there(path, "the environment of a run, a table in JSON")
    if stored and "fedcohort" not in stored:  # another file of the folder, with a good checksum
        names = ", ".join(stored)
        raise ValueError(f"{path} must be the environment of a run, got a table of {names}")
    return {name: str(value) for name, value in stored.items()}


def write_sources(folder: Path, digests: Mapping[str, str]) -> None:
    """Write the digests of sources of one's own, by reference; without any there is no file."""
    if digests:
        write_json(folder / SOURCES, digests)
    else:
        (folder / SOURCES).unlink(missing_ok=True)


def read_sources(folder: Path) -> dict[str, str]:
    """Return the digests of the sources that a run was begun with, by reference."""
    path = folder / SOURCES
    digests = read_if_there(path, "the digests of sources, a table in JSON")
    for name, digest in digests.items():
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise ValueError(f"{path} must hold digests of 64 digits, got {digest!r} for {name}")
    return digests


def write_world_digest(folder: Path, digest: str | None) -> None:
    """Write the digest of the recorded world that a run plays; without one there is no file."""
    if digest is not None:
        write_sealed_text(folder / WORLD_DIGEST, f"{digest}\n")
    else:
        (folder / WORLD_DIGEST).unlink(missing_ok=True)


def read_world_digest(folder: Path) -> str | None:
    """Return the digest of the recorded world that a run played, None if unknown."""
    return read_digest(folder / WORLD_DIGEST)


def check_world_digest(folder: Path, digest: str) -> None:
    """Refuse a recorded world other than the one that a run was begun in."""
    check_digest(folder / WORLD_DIGEST, digest, "world_file", "rounds")


def check_digest(path: Path, digest: str, argument: str, content: str) -> None:
    """Refuse what has another digest than a run was begun with; an unknown one passes.

    Args:
        path: The file with the digest, in the folder of the run.
        digest: The digest of what is given now.
        argument: The argument that gives it, for the message.
        content: What it consists of.
    """
    if read_digest(path) not in (None, digest):
        raise ValueError(
            f"{argument} must be what the run in {path.parent} was begun with, got other "
            f"{content}; choose another folder"
        )


def read_digest(path: Path) -> str | None:
    """Return the digest in a file, None if there is no such file."""
    if not path.exists():
        return None
    try:
        *_, digest = read_sealed_text(path).splitlines() or [""]
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must hold a digest, got: {error}") from None
    if not DIGEST.fullmatch(digest):
        raise ValueError(f"{path} must hold a digest of 64 digits, got {digest!r}")
    return digest


def save_allocations(folder: Path, first_round: int, arrays: Arrays) -> None:
    """Write the probabilities that were recorded since a round."""
    save_arrays(folder / ALLOCATIONS / chunk_name(first_round), arrays)


def load_allocations(folder: Path) -> Iterator[tuple[Path, Arrays]]:
    """Yield the recorded probabilities, chunk by chunk, each with its path."""
    for path in sorted((folder / ALLOCATIONS).glob("[0-9]*.npz")):
        yield path, load_arrays(path)


def discard_allocations(folder: Path) -> None:
    """Remove all recorded probabilities."""
    discard_chunks(folder / ALLOCATIONS)


def read_if_there(path: Path, purpose: str) -> dict[str, Any]:
    """Return the table in a JSON file, nothing if there is no such file."""
    return read_json_table(path, purpose) if path.exists() else {}


def chunk_name(first_round: int) -> str:
    """Return the name of the file that holds the rounds from this one."""
    return f"{first_round:07d}.npz"


def discard_chunks(folder: Path) -> None:
    """Remove the chunks of rounds in a folder."""
    for path in folder.glob("*.npz"):
        path.unlink()


def free_name(folder: Path, pattern: str) -> Path:
    """Return the first path that is not taken; the pattern has a place for a number."""
    number = 1
    while (folder / pattern.format(number)).exists():
        number += 1
    return folder / pattern.format(number)


def holds_only(folder: Path, names: Collection[str]) -> bool:
    """Return whether a folder, if it is there, holds nothing but these and drafts of them."""
    if not folder.is_dir():
        return True
    for path in folder.iterdir():
        if path.name not in names and not any(is_draft(path.name, name) for name in names):
            return False
    return True


def find_difference(
    settings: Mapping[str, Any], stored: Mapping[str, Any]
) -> tuple[str, str, str] | None:
    """Return the first setting that differs from a stored one, None if none does.

    Returns:
        The setting's name, its stored value and its other value in words.
    """
    for name in {**settings, **stored}:
        if settings.get(name) != stored.get(name):
            return name, in_words(stored.get(name)), in_words(settings.get(name))
    return None


def in_words(value: Any) -> str:
    """Return a setting as a flag takes it.

    Examples:
        >>> in_words(("iid", "shards")), in_words(None), in_words(True)
        ('iid,shards', 'none', 'true')
    """
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)
