"""Folders that a run may be written to."""

from pathlib import Path

from fedcohort.files import check_folder
from fedcohort.lab.folder.advice import has_advice
from fedcohort.lab.folder.comparison import settings_path


def check_out(folder: Path) -> None:
    """Refuse a path that no run can be written to: a file, or a folder of advice.

    Args:
        folder: The folder; it need not exist.

    Raises:
        ValueError: If the path or one of its parents is a file, or the folder holds advice.
    """
    check_folder("out", folder)
    if has_advice(folder):
        raise ValueError(
            f"out must not hold advice, got {folder}; to train with its settings: "
            f"compare --config {settings_path(folder)} --out ANOTHER"
        )


def check_empty(folder: Path) -> None:
    """Refuse a folder with anything in it.

    Args:
        folder: The folder to write to; it need not exist.

    Raises:
        ValueError: If something is there.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(
            f"out must be a new or empty folder, got {folder}; choose another or add --overwrite"
        )
