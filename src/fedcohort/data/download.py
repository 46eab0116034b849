"""Download a published file: resumed if interrupted, checked before it gets its name."""

import hashlib
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path

OnProgress = Callable[[int, int | None], None]  # bytes so far, bytes in all

MAX_TRIES = 5
BLOCK_SIZE = 1 << 18
TIMEOUT_SECONDS = 30
PARTIAL_CONTENT = 206
RANGE_NOT_SATISFIABLE = 416


class DataNotFound(ValueError):
    """A dataset is neither on this machine nor can it be downloaded.

    The message says which file to put where.
    """


def fetch(url: str, target: Path, *, checksum: str, on_progress: OnProgress | None = None) -> Path:
    """Download a file unless it is there already.

    A download that was interrupted leaves `target.part`, and the next one continues it. A part
    with a wrong checksum is deleted. A file that is there already is never touched.

    Args:
        url: Address of the file.
        target: Where to put it.
        checksum: `md5:...` or `sha256:...`.
        on_progress: Called with the bytes so far and in all (None if the server does not say).

    Returns:
        The target.

    Raises:
        DataNotFound: If the file cannot be downloaded.
        ValueError: If it has another checksum.
    """
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive_access(target.parent):
            if not target.exists():
                _download_part(url, part, on_progress)
                _check_sum(url, part, checksum)
                os.replace(part, target)
    except (OSError, HTTPException) as error:
        message = f"{url} could not be downloaded: {error}"
        if part.exists():
            message += (
                f" (what has arrived so far is kept in {part.name}, "
                "and the next attempt goes on from there)"
            )
        raise DataNotFound(f"{message}; {manual_advice(url, target)}") from None
    return target


def manual_advice(url: str, target: Path) -> str:
    """Return how to do by hand what `fetch` does."""
    return (
        f"download {url} elsewhere and put the file as {target.name} "
        f"into the directory {target.parent}"
    )


def _download_part(url: str, part: Path, on_progress: OnProgress | None) -> None:
    """Download until the part is complete, over several connections if some are cut."""
    for attempt in range(1, MAX_TRIES + 1):
        try:
            done, total = _continue_part(url, part, on_progress)
            if total is None or done >= total:
                return
            failure: Exception = ConnectionError(
                f"the connection was cut after {done} of {total} bytes"
            )
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != RANGE_NOT_SATISFIABLE:
                raise
            if error.headers.get("Content-Range") == f"bytes */{part.stat().st_size}":
                return  # the part was complete already
            part.unlink()
            failure = error
        except (TimeoutError, ConnectionError, HTTPException) as error:
            failure = error
        if attempt == MAX_TRIES:
            raise failure


def _continue_part(url: str, part: Path, on_progress: OnProgress | None) -> tuple[int, int | None]:
    """Append what the part lacks, or start again if the server ignores the range.

    Returns:
        The bytes so far, and the bytes in all if the server says so.
    """
    done = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        if not _is_continuation(response, done):
            done = 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with open(part, "ab" if done else "wb") as file:
            while block := response.read(BLOCK_SIZE):
                file.write(block)
                done += len(block)
                if on_progress:
                    on_progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    return done, total


def _is_continuation(response: HTTPResponse, done: int) -> bool:
    """Return whether a response starts at the byte that was asked for."""
    content_range = response.headers.get("Content-Range") or ""
    return response.status == PARTIAL_CONTENT and content_range.startswith(f"bytes {done}-")


def _check_sum(url: str, part: Path, checksum: str) -> None:
    """Delete and refuse a part whose checksum is another one."""
    algorithm, _, expected = checksum.partition(":")
    with open(part, "rb") as file:
        actual = hashlib.file_digest(file, algorithm).hexdigest()
    if actual != expected:
        part.unlink()
        raise ValueError(
            f"{url} must have the {algorithm} checksum {expected}, got {actual}: "
            "the download was discarded; try again, "
            "and if it stays so, the file was changed at its source or on the way"
        )


@contextmanager
def _exclusive_access(folder: Path) -> Iterator[None]:
    """Let one process at a time download into a folder.

    Where files cannot be locked, only the checksum protects the download.
    """
    with open(folder / ".lock", "a") as lock:  # not the part itself, which is renamed at the end
        if sys.platform != "win32":
            import fcntl

            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
