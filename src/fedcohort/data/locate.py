"""Find a data set by its name: in a data directory, in the cache, from the system, or from the net."""

import os
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path

from fedcohort.checks import check_choice
from fedcohort.data.cifar10 import CIFAR10
from fedcohort.data.dataset import Dataset
from fedcohort.data.digits import digits
from fedcohort.data.download import DataNotFound, Progress, fetch, put
from fedcohort.data.idx import GZIP
from fedcohort.data.idx_sets import EMNIST_LETTERS, FASHION_MNIST, MNIST
from fedcohort.data.sources import Files, Form, Source, loose, read, write

SYSTEM = Path("/usr/share/datasets")  # where Debian's dataset-* packages lie

Loader = Callable[[Path | None, bool, Progress | None], Dataset]


def load(
    name: str | PathLike[str],
    data_dir: str | PathLike[str] | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """Return a data set by its name, or the arrays of a path that ends in .npz; what is nowhere on disk is downloaded.

    It is looked for in data_dir, $FEDCOHORT_DATA, the cache directory and the system's data sets, in this order, and
    downloaded into the first of them. progress is called with the bytes so far and in all, file by file.
    """
    word = os.fspath(name)
    if word.endswith(".npz"):
        return Dataset.from_npz(word)
    loader = DATASETS[check_choice("dataset", word, DATASETS)]
    return loader(Path(data_dir) if data_dir is not None else None, download, progress)


def directories(data_dir: Path | None = None) -> list[Path]:
    """Return where data sets are looked for, first to last; one that does not exist is looked at all the same."""
    given = [data_dir] if data_dir is not None else []
    told = [Path(os.environ["FEDCOHORT_DATA"])] if os.environ.get("FEDCOHORT_DATA") else []
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedcohort"
    return [path.expanduser() for path in (*given, *told, cache, SYSTEM)]


def obtain(
    source: Source, data_dir: Path | None, download: bool, progress: Progress | None
) -> Dataset:
    """Read a source from the first directory that has it whole, else download it into the first directory."""
    roots = directories(data_dir)
    for root in roots:
        if root.exists() and not root.is_dir():
            raise ValueError(f"a data directory must be a directory, got the file {root}")
        for folder in folders(source, root):
            for form in source.forms:
                if files := read(folder, form):
                    return _parsed(source, form, files, folder)
    home = roots[0] / source.folders[0]
    if not download:
        raise DataNotFound(_nowhere(source, roots, home))
    return _downloaded(source, home, progress)


def folders(source: Source, root: Path) -> list[Path]:
    """Return where in a directory a source may lie; the directory itself counts if it bears one of the source's names."""
    own = [root] if any(root.match(folder) for folder in source.folders if folder != ".") else []
    return own + [root / folder for folder in source.folders]


def _downloaded(source: Source, home: Path, progress: Progress | None) -> Dataset:
    """Fetch what is missing and unpack it file by file; an archive goes only when every file of it is in place."""
    form = source.forms[0]
    missing = [
        remote for remote in source.remotes if not loose(home, remote.file.removesuffix(".gz"))
    ]
    for done, remote in enumerate(missing):
        try:
            fetch(remote.url, home / remote.file, checksum=remote.checksum, progress=progress)
        except DataNotFound as error:
            others = [put(other.url, home / other.file) for other in missing[done + 1 :]]
            raise DataNotFound("; ".join([str(error), *others])) from None
    files = read(home, form)
    if files is None:
        raise DataNotFound(
            f"{home} must hold {', '.join(form.names)} after the download, but does not"
        )
    dataset = _parsed(source, form, files, home)
    for archive in form.archives:
        if (home / archive).exists():
            for name, data in files.items():
                write(home / (f"{name}.gz" if data[:2] == GZIP else name), data)
            (home / archive).unlink()
    return dataset


def _parsed(source: Source, form: Form, files: Files, folder: Path) -> Dataset:
    try:
        return form.parse(files)
    except ValueError as error:
        raise ValueError(f"{source.name} in {folder} cannot be used: {error}") from None


def _nowhere(source: Source, roots: list[Path], home: Path) -> str:
    tried = ", ".join(str(root) for root in roots)
    advice = "; ".join(put(remote.url, home / remote.file) for remote in source.remotes)
    return f"{source.name} is in none of the data directories {tried}, and downloading is off; {advice}"


DATASETS: dict[str, Loader] = {
    "digits": lambda data_dir, download, progress: digits(),
    "cifar10": partial(obtain, CIFAR10),
    "emnist-letters": partial(obtain, EMNIST_LETTERS),
    "mnist": partial(obtain, MNIST),
    "fashion-mnist": partial(obtain, FASHION_MNIST),
}
