"""CIFAR-10, binary or pickled version: 50,000 training and 10,000 test images."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.data.archives import decompress
from fedcohort.data.dataset import Dataset
from fedcohort.data.safe_pickle import unpickle
from fedcohort.data.samples import Array, check_labels
from fedcohort.data.source import FileForm, RemoteFile, Source

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
RECORDS = 10_000
TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
BATCHES = (*TRAIN_BATCHES, "test_batch")

Batch = tuple[Array, Ints]


def cifar10_source(records: int = RECORDS) -> Source:
    """Return where CIFAR-10 lies and how it is read.

    The binary version is downloaded, because it holds no pickles.

    Args:
        records: Number of records that each batch must hold.
    """
    binary = FileForm(
        names=tuple(f"{name}.bin" for name in BATCHES),
        parse=partial(from_binary, records=records),
        archives=("cifar-10-binary.tar.gz",),
    )
    pickled = FileForm(
        names=BATCHES,
        parse=partial(from_python, records=records),
        archives=("cifar-10-python.tar.gz",),
    )
    remote = RemoteFile(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
    )
    return Source(
        name="cifar10",
        folders=("cifar10", "cifar-10-batches-bin", "cifar-10-batches-py", "."),
        forms=(binary, pickled),
        remotes=(remote,),
    )


def from_binary(files: Mapping[str, bytes], records: int = RECORDS) -> Dataset:
    """Join the six binary batches, and refuse one with another number of records."""
    batches = []
    for name in BATCHES:
        file = f"{name}.bin"
        batches.append(_binary_batch(files[file], file, records))
    return _join(batches)


def from_python(files: Mapping[str, bytes], records: int = RECORDS) -> Dataset:
    """Join the six pickled batches without running code in them, and refuse incomplete ones."""
    batches = []
    for name in BATCHES:
        batches.append(_python_batch(files[name], name, records))
    return _join(batches)


def _binary_batch(data: bytes, name: str, records: int) -> Batch:
    data = decompress(data, name)
    # The format has no header, so only the length can show that a batch is truncated.
    if len(data) != records * (1 + PIXELS):
        raise ValueError(
            f"{name} must hold {records} records of {1 + PIXELS} bytes, "
            f"got {len(data)} bytes: truncated or damaged"
        )
    rows = np.frombuffer(data, np.uint8).reshape(records, 1 + PIXELS)
    images = rows[:, 1:].reshape(-1, *SHAPE)
    return images, check_labels(name, rows[:, 0], low=0, high=9)


def _python_batch(data: bytes, name: str, records: int) -> Batch:
    batch = unpickle(decompress(data, name), name)
    if not isinstance(batch, dict):
        raise ValueError(f"{name} must hold a dictionary, got {type(batch).__name__}")
    pixels = _entry(batch, "data")
    labels = _entry(batch, "labels")
    has_pixels = getattr(pixels, "shape", None) == (records, PIXELS)
    has_labels = isinstance(labels, list) and len(labels) == records
    if not (has_pixels and has_labels):
        raise ValueError(
            f"{name} must hold 'data' of shape ({records}, {PIXELS}) "
            f"and a list of {records} 'labels'"
        )
    images = np.asarray(pixels).reshape(-1, *SHAPE)
    return images, check_labels(name, labels, low=0, high=9)


def _entry(batch: Mapping[str | bytes, Any], key: str) -> Any:
    """Return an entry whose key is text, or bytes as Python 2 wrote them."""
    return batch.get(key, batch.get(key.encode()))


def _join(batches: list[Batch]) -> Dataset:
    """Make a dataset of five training batches and one test batch."""
    *train, (test_x, test_y) = batches
    x = np.concatenate([images for images, _ in train])
    y = np.concatenate([labels for _, labels in train])
    return Dataset("cifar10", x, y, 10, np.ascontiguousarray(test_x), test_y)


CIFAR10 = cifar10_source()
