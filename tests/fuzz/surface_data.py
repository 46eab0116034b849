"""Data files: .npz, IDX, CIFAR-10 in both forms, and recorded worlds."""

import io
import pickle
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fuzz_cases import Play, Surface, require_name
from mutations import change_array, change_arrays, change_bytes, change_zip
from published import cifar_batches, cifar_binary, idx_files, put, python2_pickle

from fedcohort.data.cifar10 import cifar10_source
from fedcohort.data.dataset import Dataset
from fedcohort.data.directories import find_or_download
from fedcohort.data.mnist import MNIST
from fedcohort.world.registry import Conditions, make_world

RECORDS = 3
Case = Callable[[random.Random], None]
CELLS = (
    "0", "1", "0.5", "-1", "nan", "inf", "-inf", "", "x", "1e400", "1e-400", "0x1", "1_0", "٣",
    " 1 ", '"1"', "1;0", "\x00", "\ud800", "9" * 400,
)  # fmt: skip


def prepare(scratch: Path) -> Play:
    scratch.mkdir(parents=True)
    cases = (own_file(scratch), idx(scratch), cifar(scratch), trace(scratch))

    def play(rng: random.Random) -> None:
        rng.choice(cases)(rng)

    return play


def own_file(scratch: Path) -> Case:
    """A user's own samples."""
    path = scratch / "own.npz"
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.random((12, 2, 3, 3), np.float32),
        "y": rng.integers(0, 3, 12),
        "test_x": rng.random((4, 2, 3, 3), np.float32),
        "test_y": rng.integers(0, 3, 4),
        "clients": np.array(["a", "b", "c"] * 4),
        "num_classes": np.array(3),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    whole = buffer.getvalue()

    def play(rng: random.Random) -> None:
        change = rng.choice((change_bytes, change_arrays, change_arrays, change_zip))
        path.write_bytes(change(rng, whole))
        try:
            dataset = Dataset.from_npz(path)
        except ValueError as error:
            require_name(error, path)
            raise
        use(dataset)

    return play


def idx(scratch: Path) -> Case:
    """The four files of MNIST, gzipped or not."""
    files, _ = idx_files("", "t10k")
    folder = scratch / "mnist"

    def play(rng: random.Random) -> None:
        clear(folder)
        changed = dict(files)
        name = rng.choice(list(changed))
        if rng.random() < 0.5:
            changed[name] = change_bytes(rng, changed[name][:16]) + changed[name][16:]
        else:
            changed[name] = change_bytes(rng, changed[name])
        put(folder, changed, gzipped=rng.random() < 0.3)
        if rng.random() < 0.2:
            path = rng.choice(list(folder.iterdir()))
            path.write_bytes(change_bytes(rng, path.read_bytes()))
        read_source(MNIST, scratch, folder)

    return play


def cifar(scratch: Path) -> Case:
    """The six batches of CIFAR-10: binary, or pickled by Python 2 or 3."""
    source = cifar10_source(RECORDS)
    batches = cifar_batches(RECORDS)
    binary = cifar_binary(batches)
    forms = [binary, {name: python2_pickle(x, y) for name, (x, y) in batches.items()}]
    pickled = {}
    for name, (x, y) in batches.items():
        pickled[name] = pickle.dumps({"data": x, "labels": y.tolist()}, protocol=2)
    forms.append(pickled)
    folder = scratch / "cifar10"

    def play(rng: random.Random) -> None:
        clear(folder)
        changed = dict(rng.choice(forms))
        name = rng.choice(list(changed))
        head = rng.choice((len(changed[name]), 250))
        changed[name] = change_bytes(rng, changed[name][:head]) + changed[name][head:]
        put(folder, changed)
        read_source(source, scratch, folder)

    return play


def trace(scratch: Path) -> Case:
    """A recorded world as CSV, .npy or .npz."""
    table = np.random.default_rng(0).random((6, 4)).round(2)

    def play(rng: random.Random) -> None:
        path = scratch / f"trace{rng.choice(('.csv', '.npy', '.npz', ''))}"
        path.write_bytes(written_trace(rng, path.suffix, table))
        conditions = Conditions(num_clients=4, seeds=[0, 1], rates=(0.5,), file=str(path))
        try:
            world = make_world("recorded", conditions)
        except ValueError as error:
            require_name(error, path)
            raise
        for row in world.rows:
            if row.shape != (2, 4) or not (row >= 0).all():
                raise AssertionError(f"a row of {row}")

    return play


def written_trace(rng: random.Random, suffix: str, table: np.ndarray) -> bytes:
    if suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, change_array(rng, table))
        content = buffer.getvalue()
        return rng.choice((content, change_bytes(rng, content), change_bytes(rng, content[:128])))
    if suffix == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, table=table)
        change = rng.choice((change_arrays, change_zip, change_bytes))
        return change(rng, buffer.getvalue())
    rows = [[str(cell) for cell in row] for row in table]
    for _ in range(rng.choice((1, 1, 3))):
        row = rng.choice(rows)
        row[rng.randrange(4)] = rng.choice(CELLS)
    ending = rng.choice(("\n", "\r\n", "\r", "\n\n", "\u2028"))
    text = ending.join(",".join(row) for row in rows)
    content = text.encode(errors="surrogatepass")
    return rng.choice((content, content, change_bytes(rng, content)))


def read_source(source, scratch, folder):
    """Read a published data set from a folder; nothing is downloaded."""
    try:
        dataset = find_or_download(source, scratch, download=False, on_progress=None)
    except ValueError as error:
        require_name(error, folder, scratch)
        raise
    use(dataset)


def use(dataset: Dataset) -> None:
    """Do with samples what every training does first."""
    for how in ("symmetric", "unit", "standard"):
        scaled = dataset.scaled(how)
        if scaled.x.dtype != np.float32 or not np.isfinite(scaled.x).all():
            raise AssertionError(f"samples of {dataset.name} are not finite after {how}")
    assert len(dataset.digest) == 64


def clear(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()


SURFACES = (Surface("data", prepare, 20),)
