"""The folder of `advise`. It has settings as a comparison has, but it is no run."""

from pathlib import Path

from fedcohort.lab.folder.shared import ENVIRONMENT

ADVICE = "advice.json"


def has_advice(folder: Path) -> bool:
    """Return whether a folder holds advice and no run, which has an environment, too."""
    return (folder / ADVICE).exists() and not (folder / ENVIRONMENT).exists()


def check_not_advice(name: str, folder: Path) -> None:
    """Refuse a folder of advice where a run is read.

    Args:
        name: The argument's name, for the message.
        folder: The folder to read.

    Raises:
        ValueError: If the folder holds advice.
    """
    if has_advice(folder):
        raise ValueError(
            f"{name} must be a run, got advice in {folder}; "
            "give the run that the advice was made from"
        )
