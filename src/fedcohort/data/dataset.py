"""A dataset: samples and their labels, checked once when it is made."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.checks import check_choice, check_int
from fedcohort.data.npz import count_classes, read_npz
from fedcohort.data.samples import Array, check_labels, check_samples, sample_shape
from fedcohort.data.scaling import SCALINGS

MAX_CLASSES = 1_000_000  # a higher label is a mistake, and a network would need as many outputs


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with labels, and where known a test set and the natural owner of each sample.

    Attributes:
        name: Name of the dataset, for messages.
        x: Images [N, C, H, W], uint8 or float32, or features [N, F], float32. Other floats become
            float32.
        y: Labels [N], int64, from 0 to num_classes - 1.
        num_classes: Number of classes.
        test_x: Test samples [M, ...] like x, or None.
        test_y: Test labels [M] like y, or None. A test set needs both.
        clients: Owner of each sample [N], as numbers or words, for the partition `by-client`.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.data import Dataset
        >>> data = Dataset("tiny", x=np.zeros((3, 2)), y=[0, 1, 1], num_classes=2)
        >>> data.x.dtype, data.y.tolist()
        (dtype('float32'), [0, 1, 1])
    """

    name: str
    x: Array
    y: Ints
    num_classes: int
    test_x: Array | None = None
    test_y: Ints | None = None
    clients: Array | None = None

    def __post_init__(self) -> None:
        check_int("num_classes", self.num_classes, 1, MAX_CLASSES)
        self._check_pair("x", "y")
        self._check_test_set()
        self._check_clients()

    @cached_property
    def digest(self) -> str:
        """A SHA-256 digest of the content: equal data have equal digests, whatever the file."""
        digest = hashlib.sha256(f"{self.num_classes} classes ".encode())
        for name in ("x", "y", "test_x", "test_y"):
            values = getattr(self, name)
            if values is not None:
                digest.update(f"{name} {values.dtype.str} {values.shape} ".encode())
                digest.update(np.ascontiguousarray(values).view(np.uint8).data)
        if self.clients is not None:
            owners = "\n".join(str(owner) for owner in self.clients.tolist())
            digest.update(b"clients " + owners.encode())
        return digest.hexdigest()

    def scaled(self, how: str = "symmetric") -> "Dataset":
        """Return the dataset with uint8 images as float32; float data is returned as it is.

        Args:
            how: `symmetric` for [-1, 1], `unit` for [0, 1], or `standard` for mean 0 and standard
                deviation 1 in each channel of the training images.

        Returns:
            The scaled dataset.

        Raises:
            ValueError: If there is no such scaling.
        """
        check_choice("scaling", how, SCALINGS)
        if self.x.dtype != np.uint8:
            return self
        scale = SCALINGS[how]
        test_x = self.test_x
        if test_x is not None:
            test_x = scale(test_x, self.x)
        return replace(self, x=scale(self.x, self.x), test_x=test_x)

    @classmethod
    def from_npz(cls, path: str | PathLike[str]) -> "Dataset":
        """Read a dataset from a .npz file, without pickle.

        Args:
            path: File with the arrays x and y, and perhaps test_x, test_y, clients and num_classes.
                Without num_classes it is the highest label + 1.

        Returns:
            The dataset, named like the file.

        Raises:
            ValueError: If the file cannot be read, or an array is missing or unfit.
        """
        file = Path(path)
        arrays = read_npz(file)
        try:
            num_classes = count_classes(arrays)
            arrays.pop("num_classes", None)
            return cls(file.stem, num_classes=num_classes, **arrays)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file}: {error}") from None

    def _check_pair(self, x_name: str, y_name: str) -> None:
        """Check samples and their labels, and keep them in their final types."""
        x = check_samples(f"{x_name} of {self.name}", getattr(self, x_name))
        labels = getattr(self, y_name)
        y = check_labels(f"{y_name} of {self.name}", labels, low=0, high=self.num_classes - 1)
        if len(x) != len(y):
            raise ValueError(
                f"{x_name} and {y_name} of {self.name} must be equally long, "
                f"got {len(x)} and {len(y)}"
            )
        object.__setattr__(self, x_name, x)
        object.__setattr__(self, y_name, y)

    def _check_test_set(self) -> None:
        if self.test_x is None and self.test_y is None:
            return
        for name in ("test_x", "test_y"):
            if getattr(self, name) is None:
                raise ValueError(
                    f"test_x and test_y of {self.name} must come together, got no {name}"
                )
        self._check_pair("test_x", "test_y")
        test_x = np.asarray(self.test_x)
        if test_x.shape[1:] != self.x.shape[1:] or test_x.dtype != self.x.dtype:
            raise ValueError(
                f"test_x of {self.name} must be like x, "
                f"{self.x.dtype} [M, {sample_shape(self.x)}], "
                f"got {test_x.dtype} [M, {sample_shape(test_x)}]"
            )

    def _check_clients(self) -> None:
        if self.clients is None:
            return
        clients = np.asarray(self.clients)
        if clients.shape != (len(self.y),) or clients.dtype.kind not in "iuUS":
            raise ValueError(
                f"clients of {self.name} must be {len(self.y)} whole numbers or words, "
                f"one per sample, got {clients.dtype} of shape {clients.shape}"
            )
        object.__setattr__(self, "clients", clients)
