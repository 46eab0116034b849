"""Folders and the moment a file takes its place."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # Windows has no such locks.
    fcntl = None


@contextmanager
def atomic_write(path: Path, previous: Path | None = None) -> Iterator[Path]:
    """Yield a draft beside the target that takes its place when the block ends.

    If the block fails, the draft is removed and the target stays as it was. A draft that a killed
    process left behind is removed at the next write of the same file.

    Args:
        path: The file to write. Its folder is created if needed.
        previous: Where to keep the file that is replaced, if there is one. The target is there
            at every moment.

    Yields:
        The path of the draft, with the suffix of the target.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale_drafts(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    with _errors_about(path, draft), _claimed(draft):
        try:
            yield draft
            with draft.open("rb+") as file:
                # Without this, the new name may stand for an empty file after a power cut.
                os.fsync(file.fileno())
            if previous is not None and path.exists():
                _keep(path, previous)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _errors_about(path: Path, draft: Path) -> Iterator[None]:
    """Let errors about a draft name its target, which is the file that a user knows."""
    try:
        yield
    except OSError as error:
        if error.filename == str(draft):
            error.filename = str(path)
        raise


def is_draft(name: str, target: str) -> bool:
    """Return whether a file of this name is a draft that `atomic_write` made of a target."""
    suffix = Path(target).suffix
    return bool(re.fullmatch(rf"\.{re.escape(target)}\.[0-9]+{re.escape(suffix)}", name))


def _keep(path: Path, previous: Path) -> None:
    """Give a file a second name, which takes the place of whatever had it."""
    with atomic_write(previous) as draft:
        draft.unlink(missing_ok=True)
        try:
            os.link(path, draft)
        except OSError:  # A file system without links.
            shutil.copyfile(path, draft)


def _remove_stale_drafts(path: Path) -> None:
    """Remove drafts of this file whose writer was killed; a living writer locks its draft."""
    if fcntl is None:
        return
    names = [entry.name for entry in os.scandir(path.parent) if is_draft(entry.name, path.name)]
    for name in names:
        draft = path.with_name(name)
        try:
            with draft.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()
        except OSError:
            continue  # Its writer lives, or is just done, or locks do not work here.


@contextmanager
def _claimed(draft: Path) -> Iterator[None]:
    """Create a draft and hold its lock, so that other processes see that its writer lives."""
    if fcntl is None:
        yield
        return
    while True:
        with draft.open("ab") as file:
            with suppress(OSError):  # A file system without locks: nobody removes drafts there.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_in_place(file.fileno(), draft):
                continue  # Removed as stale between its creation and the lock.
            yield
            return


def _is_in_place(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


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


def check_exists(name: str, path: Path) -> None:
    """Refuse a path to read that does not exist.

    Args:
        name: The argument's name, for the message.
        path: The file.

    Raises:
        ValueError: If there is nothing.
    """
    if not path.exists():
        raise ValueError(f"{name} must be a file, got {path}, which does not exist")


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
def locked(folder: Path, name: str = "out", waits: bool = False) -> Iterator[None]:
    """Keep other processes from using a folder while the block runs.

    The operating system releases the lock when the process ends, however it ends. Windows has
    no such locks, so nothing is locked there.

    Args:
        folder: The folder; it is created if needed, and removed if nothing was written to it.
        name: The argument's name, for the message.
        waits: Whether to wait for a process that holds the lock.

    Raises:
        ValueError: If another process holds the lock, unless the call waits for it.
    """
    if fcntl is None:
        yield
        return

    descriptor = None
    while descriptor is None:
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = _lock_folder(folder, waits)
        except BlockingIOError:
            message = f"{name} must not be in use by another process, got {folder}"
            raise ValueError(message) from None
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # something was written
                folder.rmdir()
        os.close(descriptor)


def _lock_folder(folder: Path, waits: bool) -> int | None:
    """Return the descriptor of a locked folder; None if another process has just removed it."""
    assert fcntl is not None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    is_locked = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_locked = _is_in_place(descriptor, folder)
    finally:
        if not is_locked:
            os.close(descriptor)
    return descriptor if is_locked else None


def digest_file(path: Path) -> str:
    """Return the SHA-256 digest of a file's bytes."""
    check_file(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
