"""In which forms a data set may lie in a folder, and how its files are read from there."""

import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fedcohort.data.dataset import Dataset

Files = dict[str, bytes]
BROKEN = (
    OSError,
    EOFError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)


@dataclass(frozen=True)
class Remote:
    """A published file: its address and its checksum, as algorithm:digits."""

    url: str
    checksum: str

    @property
    def file(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Form:
    """One published form: the files of these names (each perhaps gzipped), loose or inside one of the archives."""

    names: tuple[str, ...]
    parse: Callable[[Mapping[str, bytes]], Dataset]
    archives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A data set on disk or on the net; "." among its folders only where no other set uses the same file names."""

    name: str
    folders: tuple[str, ...]
    forms: tuple[Form, ...]
    remotes: tuple[Remote, ...]


def read(folder: Path, form: Form) -> Files | None:
    """Return the files of a form that lie in a folder, loose or in an archive; None if some of them do not."""
    paths = {name: loose(folder, name) for name in form.names}
    if all(paths.values()):
        return {name: path.read_bytes() for name, path in paths.items() if path}
    for archive in form.archives:
        if (folder / archive).is_file():
            return read_archive(folder / archive, form.names)
    return None


def loose(folder: Path, name: str) -> Path | None:
    """Return the file of this name, plain or gzipped; None if there is none."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read_archive(path: Path, names: tuple[str, ...]) -> Files:
    """Return members of a .tar.gz or .zip by their last name, into memory only: no member can write anywhere."""
    wanted = {f"{name}{ending}": name for name in names for ending in ("", ".gz")}
    try:
        members = _zipped(path, wanted) if zipfile.is_zipfile(path) else _tarred(path, wanted)
    except BROKEN as error:
        raise ValueError(
            f"{path} is damaged or truncated: {error or type(error).__name__}"
        ) from None
    missing = [name for name in names if name not in members]
    if missing:
        raise ValueError(f"{path} must contain {', '.join(names)}, but lacks {', '.join(missing)}")
    return members


def write(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: under another name first, so that an interruption leaves no half of it."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _zipped(path: Path, wanted: Mapping[str, str]) -> Files:
    with zipfile.ZipFile(path) as archive:
        found = {member: wanted.get(PurePosixPath(member).name) for member in archive.namelist()}
        return {name: archive.read(member) for member, name in found.items() if name}


def _tarred(path: Path, wanted: Mapping[str, str]) -> Files:
    members: Files = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = wanted.get(PurePosixPath(member.name).name)
            content = archive.extractfile(member) if name and member.isreg() else None
            if name and content:
                members[name] = content.read()
    return members
