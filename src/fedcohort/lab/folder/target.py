"""Folders that a run may be written to."""

from pathlib import Path

from fedcohort.files import check_folder
from fedcohort.lab.folder.advice import has_advice
from fedcohort.lab.folder.comparison import COMPARISON_SETTINGS, settings_path
from fedcohort.lab.folder.shards import SHARDS
from fedcohort.lab.folder.shared import ENVIRONMENT, holds_only


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


def check_free(folder: Path) -> None:
    """Refuse a folder without a comparison, unless one may begin there.

    A comparison that was killed before its settings were in place left its environment at most,
    and a shard that could not begin an empty folder of shards.

    Args:
        folder: The folder to write to; it need not exist.

    Raises:
        ValueError: If something else is there.
    """
    own = {ENVIRONMENT, COMPARISON_SETTINGS}
    home = folder / SHARDS
    if home.is_dir() and not any(home.iterdir()):
        own.add(SHARDS)
    if not holds_only(folder, own):
        check_empty(folder)
