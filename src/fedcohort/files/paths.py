"""Folders and the moment a file takes its place."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a draft beside the target that takes its place when the block ends.

    If the block fails, the draft is removed and the target stays as it was.

    Args:
        path: The file to write. Its folder is created if needed.

    Yields:
        The path of the draft, with the suffix of the target.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        yield draft
        with draft.open("rb+") as file:
            # Without this, the new name may stand for an empty file after a power cut.
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def check_folder(name: str, path: Path) -> None:
    """Refuse a path that cannot be a folder, before anything is computed for it.

    Args:
        name: The argument's name, for the message.
        path: The folder; it need not exist.

    Raises:
        ValueError: If the path or one of its parents is a file.
    """
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise ValueError(f"{name} must be a folder, got {path}, where {part} is a file")


def check_file(path: Path) -> None:
    """Refuse a path that is there and no file: a device or a pipe may never end.

    Args:
        path: The file to read; if it is missing, opening it says so.

    Raises:
        ValueError: If the path is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise ValueError(f"{path} must be a file, got {kind}")


@contextmanager
def locked(folder: Path, name: str = "out") -> Iterator[None]:
    """Keep other processes from using a folder while the block runs.

    The operating system releases the lock when the process ends, however it ends. Windows has
    no such locks, so nothing is locked there.

    Args:
        folder: The folder; it is created if needed.
        name: The argument's name, for the message.

    Raises:
        ValueError: If another process holds the lock.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return

    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{name} must not be in use by another process, got {folder}"
            raise ValueError(message) from None
        yield
    finally:
        os.close(descriptor)


def digest_file(path: Path) -> str:
    """Return the SHA-256 digest of a file's bytes."""
    check_file(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
