"""Where datasets lie on this machine: find one there, or download it into the first place."""

import os
from contextlib import suppress
from pathlib import Path

from fedcohort.data.archives import Files, find_file, is_gzipped, read_files
from fedcohort.data.dataset import Dataset
from fedcohort.data.download import DataNotFound, OnProgress, fetch, manual_advice
from fedcohort.data.source import FileForm, Source
from fedcohort.files import write_bytes

SYSTEM = Path("/usr/share/datasets")  # Debian's dataset-* packages install there


def data_directories(data_dir: Path | None = None) -> list[Path]:
    """Return the directories to search, in this order; they need not exist.

    Args:
        data_dir: The directory to search first, if any.

    Returns:
        data_dir, $FEDCOHORT_DATA, the cache directory if there is a home, and the system's
        datasets.
    """
    paths = []
    if data_dir is not None:
        paths.append(data_dir)
    if os.environ.get("FEDCOHORT_DATA"):
        paths.append(Path(os.environ["FEDCOHORT_DATA"]))
    with suppress(RuntimeError):  # a user without a home, as in some containers
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        paths.append(Path(cache) / "fedcohort")
    paths.append(SYSTEM)
    return [path.expanduser() for path in paths]


def find_or_download(
    source: Source, data_dir: Path | None, download: bool, on_progress: OnProgress | None
) -> Dataset:
    """Read a dataset from the first directory that has all its files, or else download it.

    Args:
        source: What is known of the dataset.
        data_dir: The directory to search first, if any. Downloads go into the first directory.
        download: Whether to download what no directory has.
        on_progress: Called with the bytes so far and in all, for each file.

    Returns:
        The dataset.

    Raises:
        DataNotFound: If the files are in no directory and cannot be downloaded.
        ValueError: If the files are damaged.
    """
    directories = data_directories(data_dir)
    for directory in directories:
        if directory.exists() and not directory.is_dir():
            raise ValueError(f"a data directory must be a directory, got the file {directory}")
        dataset = _find(source, directory)
        if dataset is not None:
            return dataset

    home = directories[0] / source.folders[0]
    if not download:
        raise DataNotFound(_not_found(source, directories, home))
    return _download(source, home, on_progress)


def _find(source: Source, directory: Path) -> Dataset | None:
    """Return the dataset if one of its folders in this directory has all its files."""
    for folder in _folders(source, directory):
        for form in source.forms:
            files = read_files(folder, form.names, form.archives)
            if files:
                return _parse(source, form, files, folder)
    return None


def _folders(source: Source, directory: Path) -> list[Path]:
    """Return the folders that may hold a source: also the directory itself if its name fits."""
    folders = [directory / folder for folder in source.folders]
    for folder in source.folders:
        if folder != "." and directory.match(folder):
            return [directory, *folders]
    return folders


def _download(source: Source, home: Path, on_progress: OnProgress | None) -> Dataset:
    """Download the missing files and unpack them.

    An archive is deleted only when all its files are in place.
    """
    _fetch_missing(source, home, on_progress)
    form = source.forms[0]
    files = read_files(home, form.names, form.archives)
    if files is None:
        raise DataNotFound(
            f"{home} must hold {', '.join(form.names)} after the download, but does not"
        )
    dataset = _parse(source, form, files, home)
    for archive in form.archives:
        if (home / archive).exists():
            _write_files(home, files)
            (home / archive).unlink()
    return dataset


def _fetch_missing(source: Source, home: Path, on_progress: OnProgress | None) -> None:
    """Download each missing file. If one fails, say how to get it and the rest by hand."""
    missing = []
    for remote in source.remotes:
        if find_file(home, remote.name.removesuffix(".gz")) is None:
            missing.append(remote)

    for position, remote in enumerate(missing):
        target = home / remote.name
        try:
            fetch(remote.url, target, checksum=remote.checksum, on_progress=on_progress)
        except DataNotFound as error:
            advice = [str(error)]
            for other in missing[position + 1 :]:
                advice.append(manual_advice(other.url, home / other.name))
            raise DataNotFound("; ".join(advice)) from None


def _write_files(folder: Path, files: Files) -> None:
    """Write files under their names, with .gz where they are gzipped."""
    for name, data in files.items():
        ending = ".gz" if is_gzipped(data) else ""
        write_bytes(folder / f"{name}{ending}", data)


def _parse(source: Source, form: FileForm, files: Files, folder: Path) -> Dataset:
    try:
        return form.parse(files)
    except ValueError as error:
        raise ValueError(f"{source.name} in {folder} cannot be used: {error}") from None


def _not_found(source: Source, directories: list[Path], home: Path) -> str:
    """Return the message of a dataset that no directory has."""
    searched = ", ".join(str(directory) for directory in directories)
    advice = "; ".join(manual_advice(remote.url, home / remote.name) for remote in source.remotes)
    return (
        f"{source.name} is in none of the data directories {searched}, "
        f"and downloading is off; {advice}"
    )
