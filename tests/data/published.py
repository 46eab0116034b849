"""Small files in the published formats, written byte by byte for the tests."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np


def idx(array):
    array = np.asarray(array, np.uint8)
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def idx_files(prefix, test, count=12, low=0, high=9, seed=0):
    """Four IDX files as {name: bytes}, with the images and labels that they hold."""
    rng = np.random.default_rng(seed)
    held = {}
    for part, n in (("train", count), (test, count // 2)):
        held[f"{prefix}{part}-images-idx3-ubyte"] = rng.integers(0, 256, (n, 28, 28), np.uint8)
        held[f"{prefix}{part}-labels-idx1-ubyte"] = rng.integers(low, high + 1, n).astype(np.uint8)
    return {name: idx(array) for name, array in held.items()}, list(held.values())


def put(folder: Path, files, gzipped=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / (f"{name}.gz" if gzipped else name)).write_bytes(
            gzip.compress(data, mtime=0) if gzipped else data
        )


def tar(path: Path, files, folder):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def zipped(path: Path, files, folder):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"{folder}/{name}.gz", gzip.compress(data))


def cifar_batches(records=4, seed=0):
    """Six batches as {name: (images [n, 3072], labels [n])}."""
    rng = np.random.default_rng(seed)
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    return {
        n: (
            rng.integers(0, 256, (records, 3072), np.uint8),
            rng.integers(0, 10, records).astype(np.uint8),
        )
        for n in names
    }


def cifar_binary(batches):
    return {f"{name}.bin": np.column_stack([y, x]).tobytes() for name, (x, y) in batches.items()}


def python2_pickle(x, y):
    """Return a batch as Python 2 pickled it: protocol 2, byte strings, numpy.core.multiarray."""

    def short(text):
        return b"U" + bytes([len(text)]) + text

    def number(value):
        return b"J" + struct.pack("<i", value)

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t"
        + short(b"b")
        + b"tR"  # an empty array ...
        b"(K\x01(" + number(len(x)) + number(3072) + b"t"  # ... and its state: version, shape,
        b"cnumpy\ndtype\n(" + short(b"u1") + b"K\x00K\x01tR"  # type with its own state,
        b"(K\x03" + short(b"|") + b"NNN" + number(-1) + number(-1) + b"K\x00tb"
        b"\x89T" + struct.pack("<i", x.size) + x.tobytes() + b"tb"  # not Fortran, the bytes
    )
    labels = b"](" + b"".join(b"K" + bytes([int(label)]) for label in y) + b"e"
    entries = (
        short(b"batch_label")
        + short(b"a batch")
        + short(b"labels")
        + labels
        + short(b"data")
        + array
    )
    return b"\x80\x02}(" + entries + b"u."
