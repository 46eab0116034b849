"""Files on disk: loose or inside a .tar.gz or .zip archive, gzipped or not."""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

Files = dict[str, bytes]
GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\0"
GZIP_FORMAT = 31  # what zlib calls a gzip stream with its checksum
BLOCK = 2**20  # bytes that are read at once


def read_files(folder: Path, names: tuple[str, ...], archives: tuple[str, ...]) -> Files | None:
    """Return the content of the named files in a folder, loose or from an archive.

    Args:
        folder: Folder to look in.
        names: Names of the files.
        archives: Names of the archives that may hold them.

    Returns:
        The content by name, gzipped or not as it lies there. None if a file is missing.

    Raises:
        ValueError: If an archive is damaged, or lacks some of the files.
    """
    paths: dict[str, Path] = {}
    for name in names:
        path = find_file(folder, name)
        if path is not None:
            paths[name] = path
    if len(paths) == len(names):
        return {name: path.read_bytes() for name, path in paths.items()}

    for archive in archives:
        if (folder / archive).is_file():
            return read_archive(folder / archive, names)
    return None


def find_file(folder: Path, name: str) -> Path | None:
    """Return the path of a file, plain or gzipped, or None if the folder lacks it."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def read_archive(path: Path, names: tuple[str, ...]) -> Files:
    """Return the named members of an archive, wherever in it they lie.

    They are read into memory only, so no member can write anywhere.

    Raises:
        ValueError: If the archive is damaged, or lacks some of the members.
    """
    wanted = {name: name for name in names}
    wanted |= {f"{name}.gz": name for name in names}
    try:
        read = _read_zip if zipfile.is_zipfile(path) else _read_tar
        members = read(path, wanted)
    except MemoryError:  # says nothing about the archive
        raise
    except Exception as error:  # The readers of zip, tar and each compression raise many kinds.
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is damaged or truncated: {reason}") from None

    missing = [name for name in names if name not in members]
    if missing:
        raise ValueError(f"{path} must contain {', '.join(names)}, but lacks {', '.join(missing)}")
    return members


def is_gzipped(data: bytes) -> bool:
    """Return whether a file's content starts like that of a gzipped file."""
    return data[:2] == GZIP_MAGIC


def decompress(data: bytes, name: str) -> bytes:
    """Return the content of a file, gzipped or not.

    Raises:
        ValueError: If it is gzipped and damaged.
    """
    if not is_gzipped(data):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is damaged or truncated: {error}") from None


def _read_zip(path: Path, wanted: Mapping[str, str]) -> Files:
    members: Files = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = wanted.get(PurePosixPath(member).name)
            if name is not None:
                members[name] = archive.read(member)
    return members


def _read_tar(path: Path, wanted: Mapping[str, str]) -> Files:
    members: Files = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = wanted.get(PurePosixPath(member.name).name)
            if name is None or not member.isreg():
                continue
            content = archive.extractfile(member)
            if content is not None:
                members[name] = content.read()
        # The checksum of a compressed archive is compared at its end, behind all members.
        assert archive.fileobj is not None
        try:
            while archive.fileobj.read(BLOCK):
                pass
        except (gzip.BadGzipFile, EOFError):
            if not _is_whole(path):
                raise
    return members


def _is_whole(path: Path) -> bool:
    """Return whether the gzip or xz streams of a file are whole, whatever bytes follow them.

    Readers take some bytes behind the last stream for a torn one: in .gz all but zeros, in .xz
    zeros.
    """
    import lzma  # Imported here, not at the top: some builds of Python lack it.

    decompressors: dict[bytes, Callable[[], Any]] = {
        GZIP_MAGIC: partial(zlib.decompressobj, GZIP_FORMAT),
        XZ_MAGIC: lzma.LZMADecompressor,
    }
    is_whole = False
    with path.open("rb") as file:
        data = file.read(BLOCK)
        magic = GZIP_MAGIC if is_gzipped(data) else XZ_MAGIC
        while data.startswith(magic):
            stream = decompressors[magic]()
            while data and not stream.eof:
                try:
                    stream.decompress(data)
                except (zlib.error, lzma.LZMAError):
                    return False
                data = stream.unused_data + file.read(BLOCK)
            is_whole = bool(stream.eof)
    return is_whole
