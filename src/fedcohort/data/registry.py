"""The one list of datasets, and how to load one by name."""

import os
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path

from fedcohort.data.cifar10 import CIFAR10
from fedcohort.data.dataset import Dataset
from fedcohort.data.digits import digits
from fedcohort.data.directories import find_or_download
from fedcohort.data.download import OnProgress
from fedcohort.data.letters import nist_letters_mix
from fedcohort.data.mnist import EMNIST_LETTERS, FASHION_MNIST, MNIST
from fedcohort.references import make_own, resolve

Loader = Callable[[Path | None, bool, OnProgress | None], Dataset]

DATASETS: dict[str, Loader] = {
    "digits": lambda data_dir, download, on_progress: digits(),
    "cifar10": partial(find_or_download, CIFAR10),
    "emnist-letters": partial(find_or_download, EMNIST_LETTERS),
    "mnist": partial(find_or_download, MNIST),
    "fashion-mnist": partial(find_or_download, FASHION_MNIST),
    "nist-letters-mix": nist_letters_mix,
}


def load(
    name: str | PathLike[str],
    data_dir: str | PathLike[str] | None = None,
    download: bool = True,
    on_progress: OnProgress | None = None,
) -> Dataset:
    """Load a dataset by its name, from a .npz file, or by a function of one's own.

    The files are searched in data_dir, in $FEDCOHORT_DATA, in the cache directory and in the
    system's datasets, in this order. A download goes into the first of them.

    Args:
        name: A key of `DATASETS`, a path that ends in .npz (see `Dataset.from_npz`), a name that
            an installed package registers, or a reference such as "mine.py:clouds" to a function
            without arguments that returns a `Dataset`.
        data_dir: The directory to search first.
        download: Whether to download a dataset that is not on this machine.
        on_progress: Called during a download with the bytes so far and in all (None if the server
            does not say), for each file.

    Returns:
        The dataset.

    Raises:
        DataNotFound: If the dataset is not on this machine and cannot be downloaded. The message
            says which file to put where.
        ValueError: If there is no such name, or the files are damaged.

    Examples:
        >>> from fedcohort.data import load
        >>> load("digits").x.shape
        (1797, 1, 8, 8)
    """
    word = os.fspath(name)
    if word.endswith(".npz"):
        return Dataset.from_npz(word)
    make = resolve("dataset", word, DATASETS)
    if word in DATASETS:
        directory = None if data_dir is None else Path(data_dir)
        return DATASETS[word](directory, download, on_progress)
    return make_own(f"dataset {word!r}", make, Dataset)
