"""CIFAR-10 in its official binary and Python versions: 5 x 10,000 images to train on, 10,000 to test on."""

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.data.dataset import Array, Dataset, labels_in
from fedcohort.data.idx import plain
from fedcohort.data.pickles import unpickle
from fedcohort.data.sources import Form, Remote, Source

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
RECORDS = 10_000
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")

Batch = tuple[Array, Ints]


def from_binary(files: Mapping[str, bytes], records: int = RECORDS) -> Dataset:
    """Join the six binary batches; one that does not hold its 10,000 records is refused."""
    return _join(_binary_batch(files[f"{name}.bin"], f"{name}.bin", records) for name in BATCHES)


def from_python(files: Mapping[str, bytes], records: int = RECORDS) -> Dataset:
    """Join the six pickled batches, read without running anything in them; one that lacks records is refused."""
    return _join(_python_batch(files[name], name, records) for name in BATCHES)


def _binary_batch(data: bytes, name: str, records: int) -> Batch:
    data = plain(data, name)
    if len(data) != records * (
        1 + PIXELS
    ):  # without a header, the length is all that tells a truncated batch
        raise ValueError(
            f"{name} must hold {records} records of {1 + PIXELS} bytes, got {len(data)} bytes: truncated or damaged"
        )
    rows = np.frombuffer(data, np.uint8).reshape(records, 1 + PIXELS)
    return rows[:, 1:].reshape(-1, *SHAPE), labels_in(name, rows[:, 0], 0, 9)


def _python_batch(data: bytes, name: str, records: int) -> Batch:
    batch = unpickle(plain(data, name), name)
    if not isinstance(batch, dict):
        raise ValueError(f"{name} must hold a dictionary, got {type(batch).__name__}")
    entries = {
        key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()
    }
    pixels, labels = entries.get("data"), entries.get("labels")
    if (
        getattr(pixels, "shape", None) != (records, PIXELS)
        or not isinstance(labels, list)
        or len(labels) != records
    ):
        raise ValueError(
            f"{name} must hold 'data' of shape ({records}, {PIXELS}) and a list of {records} 'labels'"
        )
    return np.asarray(pixels).reshape(-1, *SHAPE), labels_in(name, labels, 0, 9)


def _join(batches: Iterable[Batch]) -> Dataset:
    *train, (test_x, test_y) = batches
    x = np.concatenate([x for x, _ in train])
    y = np.concatenate([y for _, y in train])
    return Dataset("cifar10", x, y, 10, np.ascontiguousarray(test_x), test_y)


def source(records: int = RECORDS) -> Source:
    """Return where CIFAR-10 lies and how it is read; of the two versions, the one without pickles is downloaded."""
    return Source(
        name="cifar10",
        folders=("cifar10", "cifar-10-batches-bin", "cifar-10-batches-py", "."),
        forms=(
            Form(
                tuple(f"{name}.bin" for name in BATCHES),
                partial(from_binary, records=records),
                ("cifar-10-binary.tar.gz",),
            ),
            Form(BATCHES, partial(from_python, records=records), ("cifar-10-python.tar.gz",)),
        ),
        remotes=(
            Remote(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
    )


CIFAR10 = source()
