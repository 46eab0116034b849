"""MNIST, Fashion-MNIST and EMNIST-Letters: four IDX files each."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.data.dataset import Array, Dataset, labels_in
from fedcohort.data.idx import parse_idx
from fedcohort.data.sources import Form, Remote, Source

IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
MNIST_FILES = (f"train-{IMAGES}", f"train-{LABELS}", f"t10k-{IMAGES}", f"t10k-{LABELS}")
LETTERS_FILES = tuple(
    f"emnist-letters-{part}-{kind}" for part in ("train", "test") for kind in (IMAGES, LABELS)
)


def digits_like(name: str, files: Mapping[str, bytes]) -> Dataset:
    """Read ten classes in 0..9, images upright, as MNIST and Fashion-MNIST are published."""
    x, y, test_x, test_y = _four(files, MNIST_FILES, 0, 9)
    return Dataset(name, x, y, 10, test_x, test_y)


def letters(files: Mapping[str, bytes]) -> Dataset:
    """Read EMNIST-Letters upright with labels 0..25; published are transposed images and labels 1..26."""
    x, y, test_x, test_y = _four(files, LETTERS_FILES, 1, 26)
    return Dataset("emnist-letters", _upright(x), y - 1, 26, _upright(test_x), test_y - 1)


def _four(
    files: Mapping[str, bytes], names: tuple[str, ...], low: int, high: int
) -> tuple[Array, Ints, Array, Ints]:
    images, labels, test_images, test_labels = names
    return (
        parse_idx(files[images], images, axes=3)[:, None],
        labels_in(labels, parse_idx(files[labels], labels, axes=1), low, high),
        parse_idx(files[test_images], test_images, axes=3)[:, None],
        labels_in(test_labels, parse_idx(files[test_labels], test_labels, axes=1), low, high),
    )


def _upright(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(-1, -2))


def _remotes(base: str, sums: tuple[str, ...]) -> tuple[Remote, ...]:
    return tuple(
        Remote(f"{base}{name}.gz", f"md5:{md5}")
        for name, md5 in zip(MNIST_FILES, sums, strict=True)
    )


MNIST = Source(
    name="mnist",
    folders=("mnist", "MNIST/raw"),
    forms=(Form(MNIST_FILES, partial(digits_like, "mnist")),),
    remotes=_remotes(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",  # PyTorch's mirror: the original site no longer serves the files
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
)

FASHION_MNIST = Source(
    name="fashion-mnist",
    folders=("fashion-mnist", "FashionMNIST/raw"),
    forms=(Form(MNIST_FILES, partial(digits_like, "fashion-mnist")),),
    remotes=_remotes(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
)

EMNIST_LETTERS = Source(
    name="emnist-letters",
    folders=("emnist-letters", "emnist", "EMNIST/raw", "gzip", "."),
    forms=(Form(LETTERS_FILES, letters, archives=("gzip.zip", "emnist-gzip.zip")),),
    remotes=(
        Remote(
            "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            "md5:58c8d27c78d21e728a6bc7b3cc06412e",
        ),
    ),
)
