"""The classes of clients in the folder of a comparison, by how often they answer."""

from pathlib import Path
from typing import Any

import numpy.typing as npt

from fedcohort.files import load_arrays, save_arrays
from fedcohort.lab.folder.shared import Arrays

CLASS_RATES = "classes.npz"


def save_class_rates(folder: Path, rates: npt.NDArray[Any], **about: npt.NDArray[Any]) -> None:
    """Write the mean success rate of each class of clients, and more about them, [G] each."""
    save_arrays(folder / CLASS_RATES, {"rates": rates, **about})


def load_classes(folder: Path) -> Arrays:
    """Return everything that was written of the classes, [G] each; nothing if nothing was."""
    path = folder / CLASS_RATES
    return load_arrays(path) if path.exists() else {}


def load_class_rates(folder: Path) -> npt.NDArray[Any] | None:
    """Return the mean success rate of each class [G], None if it was not written.

    Raises:
        ValueError: If the file holds something else.
    """
    path = folder / CLASS_RATES
    if not path.exists():
        return None
    rates = load_classes(folder).get("rates")
    if rates is None or rates.ndim != 1 or rates.dtype.kind != "f" or not rates.size:
        raise ValueError(f"{path} must hold the success rate of every class, got {rates}")
    return rates
