"""The folder of a Flower run: what the run said about itself, and its journal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcohort.files import read_json_lines, write_json
from fedcohort.lab.folder.shared import read_if_there

FLOWER_ABOUT = "run.json"
FLOWER_JOURNAL = "rounds.jsonl"
JOURNAL_KEYS = ("round", "seconds", "asked", "arrived", "success_ratio", "probabilities")


def has_flower_run(folder: Path) -> bool:
    """Return whether a Flower run was begun in a folder."""
    return (folder / FLOWER_JOURNAL).exists() or (folder / FLOWER_ABOUT).exists()


def journal_path(folder: Path) -> Path:
    """Return the path of a Flower run's journal."""
    return folder / FLOWER_JOURNAL


def load_journal(folder: Path) -> list[dict[str, Any]]:
    """Return the rounds of a Flower run; a last line that is still being written is left out."""
    return read_json_lines(journal_path(folder), "the journal of a Flower run", JOURNAL_KEYS)


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what a Flower run says about itself when it begins."""
    write_json(folder / FLOWER_ABOUT, about)


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a Flower run said about itself when it began, nothing if it did not."""
    return read_if_there(folder / FLOWER_ABOUT, "written by a Flower run")
