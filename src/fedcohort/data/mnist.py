"""MNIST, Fashion-MNIST and EMNIST-Letters: four IDX files each."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.data.dataset import Dataset
from fedcohort.data.idx import parse_idx
from fedcohort.data.samples import Array, check_labels
from fedcohort.data.source import FileForm, RemoteFile, Source

IMAGES = "images-idx3-ubyte"
LABELS = "labels-idx1-ubyte"
MNIST_FILES = (
    f"train-{IMAGES}",
    f"train-{LABELS}",
    f"t10k-{IMAGES}",
    f"t10k-{LABELS}",
)
LETTERS_FILES = (
    f"emnist-letters-train-{IMAGES}",
    f"emnist-letters-train-{LABELS}",
    f"emnist-letters-test-{IMAGES}",
    f"emnist-letters-test-{LABELS}",
)


def read_mnist(name: str, files: Mapping[str, bytes]) -> Dataset:
    """Return MNIST or Fashion-MNIST: ten classes in 0..9, images upright as published."""
    train_images, train_labels, test_images, test_labels = MNIST_FILES
    return Dataset(
        name,
        x=_images(files, train_images),
        y=_labels(files, train_labels, low=0, high=9),
        num_classes=10,
        test_x=_images(files, test_images),
        test_y=_labels(files, test_labels, low=0, high=9),
    )


def read_letters(files: Mapping[str, bytes]) -> Dataset:
    """Return EMNIST-Letters upright with labels 0..25.

    The published images are transposed, and the published labels are 1..26.
    """
    train_images, train_labels, test_images, test_labels = LETTERS_FILES
    return Dataset(
        "emnist-letters",
        x=_transposed(_images(files, train_images)),
        y=_labels(files, train_labels, low=1, high=26) - 1,
        num_classes=26,
        test_x=_transposed(_images(files, test_images)),
        test_y=_labels(files, test_labels, low=1, high=26) - 1,
    )


def _images(files: Mapping[str, bytes], name: str) -> Array:
    """Return the images [N, 1, H, W] of an IDX file."""
    return parse_idx(files[name], name, axes=3)[:, None]


def _labels(files: Mapping[str, bytes], name: str, low: int, high: int) -> Ints:
    return check_labels(name, parse_idx(files[name], name, axes=1), low, high)


def _transposed(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(-1, -2))


def _mnist_source(name: str, folder: str, url: str, checksums: tuple[str, ...]) -> Source:
    """Return the source of a dataset in four files, with the checksums in their order."""
    remotes = []
    for file, md5 in zip(MNIST_FILES, checksums, strict=True):
        remotes.append(RemoteFile(f"{url}{file}.gz", f"md5:{md5}"))
    return Source(
        name=name,
        folders=(name, folder),
        forms=(FileForm(MNIST_FILES, partial(read_mnist, name)),),
        remotes=tuple(remotes),
    )


MNIST = _mnist_source(
    name="mnist",
    folder="MNIST/raw",
    # PyTorch's mirror, because the original site no longer serves the files.
    url="https://ossci-datasets.s3.amazonaws.com/mnist/",
    checksums=(
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)

FASHION_MNIST = _mnist_source(
    name="fashion-mnist",
    folder="FashionMNIST/raw",
    url="https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    checksums=(
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
)

EMNIST_LETTERS = Source(
    name="emnist-letters",
    folders=("emnist-letters", "emnist", "EMNIST/raw", "gzip", "."),
    forms=(FileForm(LETTERS_FILES, read_letters, archives=("gzip.zip", "emnist-gzip.zip")),),
    remotes=(
        RemoteFile(
            url="https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            checksum="md5:58c8d27c78d21e728a6bc7b3cc06412e",
        ),
    ),
)
