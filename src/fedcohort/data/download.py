"""Fetch a published file: resumed if cut off, checked before it gets its name."""

import hashlib
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path

Progress = Callable[[int, int | None], None]

TRIES = 5
BLOCK = 1 << 18
SECONDS_OF_SILENCE = 30
RANGE_NOT_SATISFIABLE = 416


class DataNotFound(ValueError):
    """A data set is neither on this machine nor to be had from the net; the message says which file to put where."""


def fetch(url: str, target: Path, *, checksum: str, progress: Progress | None = None) -> Path:
    """Download a file unless it is there already, resuming what an earlier attempt left in `target.part`.

    checksum: "md5:…" or "sha256:…". A part with another sum is discarded, a target never touched; without a network, raise
    DataNotFound. progress is called with the bytes so far and in all (None if the server does not say).
    """
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.parent):
            if not target.exists():
                _complete(url, part, progress)
                _verify(url, part, checksum)
                os.replace(part, target)
    except (OSError, HTTPException) as error:
        kept = (
            f" (what has arrived so far is kept in {part.name}, and the next attempt goes on from there)"
            if part.exists()
            else ""
        )
        raise DataNotFound(
            f"{url} could not be downloaded: {error}{kept}; {put(url, target)}"
        ) from None
    return target


def put(url: str, target: Path) -> str:
    """Say by hand what `fetch` does: which file from which address to put where."""
    return f"download {url} elsewhere and put the file as {target.name} into the directory {target.parent}"


def _complete(url: str, part: Path, progress: Progress | None) -> None:
    """Read on until the part is whole, over at most five connections; a server may cut each of them short."""
    for attempt in range(1, TRIES + 1):
        try:
            done, total = _read_on(url, part, progress)
            if total is None or done >= total:
                return
            cut: Exception = ConnectionError(
                f"the connection was cut after {done} of {total} bytes"
            )
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != RANGE_NOT_SATISFIABLE:
                raise
            if error.headers.get("Content-Range") == f"bytes */{part.stat().st_size}":
                return  # the part was whole already
            part.unlink()
            cut = error
        except (TimeoutError, ConnectionError, HTTPException) as error:
            cut = error
        if attempt == TRIES:
            raise cut


def _read_on(url: str, part: Path, progress: Progress | None) -> tuple[int, int | None]:
    """Append what the part lacks, or start over if the server ignores the range; return bytes so far and in all."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE) as response:
        if not _continues(response, done):
            done = 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with open(part, "ab" if done else "wb") as file:
            while block := response.read(BLOCK):
                file.write(block)
                done += len(block)
                if progress:
                    progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    return done, total


def _continues(response: HTTPResponse, done: int) -> bool:
    return response.status == 206 and (response.headers.get("Content-Range") or "").startswith(
        f"bytes {done}-"
    )


def _verify(url: str, part: Path, checksum: str) -> None:
    algorithm, _, expected = checksum.partition(":")
    with open(part, "rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        part.unlink()
        raise ValueError(
            f"{url} must have the {algorithm} checksum {expected}, got {found}: the download was discarded; try again,"
            " and if it stays so, the file was changed at its source or on the way"
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time download into a folder; where files cannot be locked, the checksum alone guards it."""
    with open(folder / ".lock", "a") as lock:  # not the part itself: it is renamed at the end
        if sys.platform != "win32":
            import fcntl

            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
