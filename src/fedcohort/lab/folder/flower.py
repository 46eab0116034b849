"""The folder of a Flower run: what the run said about itself, and its journal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.checks import LARGEST_FLOAT, check_int, check_range
from fedcohort.files import atomic_write, parse_json_lines, read_json_lines, write_json
from fedcohort.lab.folder.checkpoint import CHECKPOINT, load_checkpoint
from fedcohort.lab.folder.shared import read_if_there

FLOWER_ABOUT = "run.json"
FLOWER_JOURNAL = "rounds.jsonl"
FLOWER_CHECKPOINT_PARTS = ("round", "model", "selector", "registry", "strategy", "totals")
JOURNAL_KEYS = ("round", "seconds", "asked", "arrived", "success_ratio", "probabilities")


def has_flower_run(folder: Path) -> bool:
    """Return whether a Flower run was begun in a folder."""
    return (folder / FLOWER_JOURNAL).exists() or (folder / FLOWER_ABOUT).exists()


def load_flower_checkpoint(folder: Path) -> dict[str, Any] | None:
    """Return the checkpoint of a Flower run; None if no round was begun yet.

    Raises:
        ValueError: If the checkpoint is damaged, or missing although the journal has rounds.
    """
    path = folder / CHECKPOINT
    state = load_checkpoint(folder, FLOWER_CHECKPOINT_PARTS)
    if state is None and load_journal(folder):
        raise ValueError(
            f"{path} must be there to go on with the rounds in {journal_path(folder)}, "
            "got no such file; choose another folder, or move this one away to begin again"
        )
    if state is not None:
        for name in FLOWER_CHECKPOINT_PARTS[1:]:
            if not isinstance(state[name], dict):
                raise ValueError(f"{name} in {path} must be a table, got {state[name]!r}")
    return state


def journal_path(folder: Path) -> Path:
    """Return the path of a Flower run's journal."""
    return folder / FLOWER_JOURNAL


def load_journal(folder: Path) -> list[dict[str, Any]]:
    """Return the rounds of a Flower run, nothing if there is no journal.

    A last line that is still being written is left out.

    Raises:
        ValueError: If a line is damaged, or a round is missing.
    """
    path = journal_path(folder)
    if not path.exists():
        return []
    rows = read_json_lines(path, "the journal of a Flower run", JOURNAL_KEYS)
    _check_rows(rows, path)
    return rows


def trim_journal(folder: Path, done: int) -> None:
    """Keep the lines of the finished rounds; a resumed run plays the others again.

    Args:
        folder: The run folder.
        done: How many rounds are finished.

    Raises:
        ValueError: If a line of a finished round is damaged or missing.
    """
    path = journal_path(folder)
    content = path.read_bytes() if path.exists() else b""
    kept = b"".join(line + b"\n" for line in content.splitlines()[:done])
    rows = parse_json_lines(kept, path, JOURNAL_KEYS)
    _check_rows(rows, path)
    if len(rows) < done:
        raise ValueError(f"{path} must hold rounds 1 to {done}, got {len(rows)} of them")
    if kept != content:
        with atomic_write(path) as draft:
            draft.write_bytes(kept)


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what a Flower run says about itself when it begins."""
    write_json(folder / FLOWER_ABOUT, about)


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a Flower run said about itself when it began, nothing if it did not."""
    return read_if_there(folder / FLOWER_ABOUT, "written by a Flower run")


def _check_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    for number, row in enumerate(rows, start=1):
        _check_row(row, number, f"line {number} of {path}")


def _check_row(row: Mapping[str, Any], number: int, where: str) -> None:
    """Refuse a line of the journal with another round, or with values of other types."""
    check_int(f"round in {where}", row["round"], number, number)
    check_int(f"arrived in {where}", row["arrived"], 0)
    for name in ("seconds", "success_ratio"):
        check_range(f"{name} in {where}", row[name], 0, LARGEST_FLOAT)

    asked = row["asked"]
    if not isinstance(asked, list) or not all(_is_asked(client) for client in asked):
        raise ValueError(f"asked in {where} must name clients and what they did, got {asked!r}")
    probabilities = row["probabilities"]
    if probabilities is not None and not isinstance(probabilities, dict):
        raise ValueError(f"probabilities in {where} must be a table, got {probabilities!r}")
    for client, probability in (probabilities or {}).items():
        check_range(f"probability of {client} in {where}", probability, 0, 1)


def _is_asked(client: Any) -> bool:
    if not isinstance(client, dict):
        return False
    return all(isinstance(client.get(name), str) for name in ("client", "status"))
