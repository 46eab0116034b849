"""What is owned: samples and their labels, checked once when they enter."""

import hashlib
import zipfile
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_choice, check_int
from fedcohort.data.scaling import SCALINGS

Array = npt.NDArray[Any]


MOST_CLASSES = 1_000_000  # a label beyond is a mistake, and would need as many outputs


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with labels; a test set and a column of natural owners where there are any.

    x:       [N, C, H, W] images, uint8 or float32, or [N, F] features, float32; other floats become float32.
    y:       [N] int64 labels in 0 .. num_classes - 1.
    test_x:  [M, ...] and test_y [M], like x and y; both or neither.
    clients: [N] who owns each sample by nature (numbers or words), for the partition `by-client`.
    """

    name: str
    x: Array
    y: Ints
    num_classes: int
    test_x: Array | None = None
    test_y: Ints | None = None
    clients: Array | None = None

    def __post_init__(self) -> None:
        check_int("num_classes", self.num_classes, 1, MOST_CLASSES)
        self._keep("x", "y")
        if (self.test_x is None) != (self.test_y is None):
            absent = "test_x" if self.test_x is None else "test_y"
            raise ValueError(
                f"test_x and test_y of {self.name} must come together, got no {absent}"
            )
        if self.test_x is not None:
            self._keep("test_x", "test_y")
            if self.test_x.shape[1:] != self.x.shape[1:] or self.test_x.dtype != self.x.dtype:
                raise ValueError(
                    f"test_x of {self.name} must be like x, {self.x.dtype} [M, {_sizes(self.x)}],"
                    f" got {self.test_x.dtype} [M, {_sizes(self.test_x)}]"
                )
        if self.clients is not None:
            clients = np.asarray(self.clients)
            if clients.shape != (len(self.y),) or clients.dtype.kind not in "iuUS":
                raise ValueError(
                    f"clients of {self.name} must be {len(self.y)} whole numbers or words, one per sample,"
                    f" got {clients.dtype} of shape {clients.shape}"
                )
            object.__setattr__(self, "clients", clients)

    def _keep(self, x_name: str, y_name: str) -> None:
        x = samples(f"{x_name} of {self.name}", getattr(self, x_name))
        y = labels_in(f"{y_name} of {self.name}", getattr(self, y_name), 0, self.num_classes - 1)
        if len(x) != len(y):
            raise ValueError(
                f"{x_name} and {y_name} of {self.name} must be equally long, got {len(x)} and {len(y)}"
            )
        object.__setattr__(self, x_name, x)
        object.__setattr__(self, y_name, y)

    @cached_property
    def digest(self) -> str:
        """What is in it as one word: equal data have equal digests, whatever the file."""
        total = hashlib.sha256(f"{self.num_classes} classes ".encode())
        for name in ("x", "y", "test_x", "test_y"):
            values = getattr(self, name)
            if values is not None:
                total.update(f"{name} {values.dtype.str} {values.shape} ".encode())
                total.update(np.ascontiguousarray(values).view(np.uint8).data)
        if self.clients is not None:
            total.update(b"clients " + "\n".join(map(str, self.clients.tolist())).encode())
        return total.hexdigest()

    def scaled(self, how: str = "symmetric") -> "Dataset":
        """Return uint8 images as float32, in [-1, 1] unless told otherwise; float data is returned as it is."""
        scale = SCALINGS[check_choice("scaling", how, SCALINGS)]
        if self.x.dtype != np.uint8:
            return self
        return replace(
            self,
            x=scale(self.x, self.x),
            test_x=None if self.test_x is None else scale(self.test_x, self.x),
        )

    @classmethod
    def from_npz(cls, path: str | PathLike[str]) -> "Dataset":
        """Read x, y and, where present, test_x, test_y, clients and num_classes (else the highest label + 1) from a .npz."""
        file = Path(path)
        arrays = _arrays_of(file)
        for key in ("x", "y"):
            if key not in arrays:
                raise ValueError(
                    f"{file} must have the key {key!r}, got {', '.join(arrays) or 'no key at all'}"
                )
        highest = [
            int(arrays[key].max())
            for key in ("y", "test_y")
            if key in arrays and _is_whole(arrays[key])
        ]
        try:
            given = arrays.pop("num_classes", None)
            if given is not None and given.size != 1:
                raise ValueError(f"num_classes must be one number, got {given.size}")
            classes = max([0, *highest]) + 1 if given is None else given.item()
            return cls(file.stem, num_classes=classes, **arrays)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file}: {error}") from None


def samples(name: str, values: npt.ArrayLike) -> Array:
    """Return images [N, C, H, W] as uint8 or float32, or features [N, F] as float32; empty, nan or infinite is refused."""
    x = np.asarray(values)
    if x.ndim not in (2, 4) or x.size == 0:
        hint = "; add the channel axis with x[:, None]" if x.ndim == 3 else ""
        raise ValueError(
            f"{name} must be images [N, C, H, W] or features [N, F], not empty, got shape {x.shape}{hint}"
        )
    if x.dtype == np.uint8 and x.ndim == 4:
        return x
    if x.dtype.kind != "f":
        raise ValueError(f"{name} must be uint8 images or floats, got {x.dtype} [N, {_sizes(x)}]")
    with np.errstate(
        over="ignore"
    ):  # what float32 cannot hold becomes infinite, and is refused as such
        x = x.astype(np.float32, copy=False)
    if not np.isfinite(x).all():
        bad = np.argwhere(~np.isfinite(x))[0]
        raise ValueError(f"{name} must be finite, got {x[tuple(bad)]} in sample {bad[0]}")
    return x


def labels_in(
    name: str, values: npt.ArrayLike, low: int = 0, high: int = np.iinfo(np.int64).max
) -> Ints:
    """Return labels as int64 [N] if every one lies within the bounds; the message names the first that does not."""
    labels = np.asarray(values)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be whole numbers of shape [N], got {labels.dtype} of shape {labels.shape}"
        )
    bad = (labels < low) | (labels > high)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"{name} must be labels between {low} and {high}, got {labels[at]} at position {at}"
        )
    return labels.astype(np.int64, copy=False)


def _arrays_of(file: Path) -> dict[str, Array]:
    try:
        with open(file, "rb") as handle:
            return _known_keys(np.load(handle, allow_pickle=False))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{file} cannot be read: {error}") from None


def _known_keys(archive: Any) -> dict[str, Array]:
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("it must be a .npz file with the keys x and y, got a single array")
    arrays: dict[str, Array] = {}
    for key in ("x", "y", "test_x", "test_y", "clients", "num_classes"):
        if key in archive.files:
            try:
                arrays[key] = archive[key]
            except ValueError as error:  # an array of objects would have to be unpickled
                raise ValueError(f"the key {key!r}: {error}") from None
    return arrays


def _is_whole(labels: Array) -> bool:
    return labels.size > 0 and labels.dtype.kind in "iu"


def _sizes(x: Array) -> str:
    return ", ".join(str(size) for size in x.shape[1:])
