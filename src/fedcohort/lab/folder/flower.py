"""The folder of a Flower run: what the run said about itself, and its journal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.checks import LARGEST_FLOAT, check_int, check_range
from fedcohort.files import parse_json_lines, read_json_lines, write_bytes, write_json
from fedcohort.lab.folder.checkpoint import CHECKPOINT, load_checkpoint
from fedcohort.lab.folder.shared import free_name, read_if_there

FLOWER_ABOUT = "run.json"
FLOWER_JOURNAL = "rounds.jsonl"
DAMAGED_JOURNAL = "rounds.jsonl.damaged-{}"
FLOWER_CHECKPOINT_PARTS = ("round", "model", "selector", "registry", "strategy", "totals")
JOURNAL_KEYS = ("round", "seconds", "asked", "arrived", "success_ratio", "probabilities")
OPTIONAL_JOURNAL_KEYS = ("deadline", "late", "absent")


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
        ValueError: If a line is damaged, or rounds do not ascend.
    """
    path = journal_path(folder)
    if not path.exists():
        return []
    rows = read_json_lines(path, "the journal of a Flower run", JOURNAL_KEYS, OPTIONAL_JOURNAL_KEYS)
    _check_rows(rows, path)
    return rows


def trim_journal(folder: Path, done: int, repair: bool = False) -> Path | None:
    """Keep the lines of the finished rounds; a resumed run plays the others again.

    Args:
        folder: The run folder.
        done: How many rounds are finished.
        repair: Whether to go on if lines of finished rounds are damaged or missing. The journal is
            set aside then, and its readable lines stay.

    Returns:
        Where the damaged journal is kept; None if none was set aside.

    Raises:
        ValueError: If such lines are damaged or missing, and not to be repaired.
    """
    path = journal_path(folder)
    content = path.read_bytes() if path.exists() else b""
    lines = content.splitlines()[:done]
    aside = None
    try:
        rounds = [row["round"] for row in _parse_journal(lines, path)]
        # An earlier repair may have left a gap, so the lines may reach into unfinished rounds.
        found = len(set(rounds) & set(range(1, done + 1)))
        if found < done:
            raise ValueError(f"{path} must hold rounds 1 to {done}, got {found} of them")
    except ValueError as error:
        if not repair:
            advice = "from_previous=True sets the journal aside and goes on without these lines"
            raise ValueError(f"{error}; {advice}") from None
        aside = free_name(folder, DAMAGED_JOURNAL)
        write_bytes(aside, content)
        lines = _readable_lines(content.splitlines(), done, path)

    kept = b"".join(line + b"\n" for line in lines)
    if kept != content:
        write_bytes(path, kept)
    return aside


def _parse_journal(lines: Sequence[bytes], path: Path) -> list[dict[str, Any]]:
    content = b"".join(line + b"\n" for line in lines)
    rows = parse_json_lines(content, path, JOURNAL_KEYS)
    _check_rows(rows, path)
    return rows


def _readable_lines(lines: Sequence[bytes], done: int, path: Path) -> list[bytes]:
    """Return the lines of finished rounds that can be read, in order of their rounds."""
    readable: dict[int, bytes] = {}
    for line in lines:
        try:
            (row,) = _parse_journal([line], path)
        except ValueError:
            continue
        if row["round"] <= done:
            readable[row["round"]] = line
    return [readable[round] for round in sorted(readable)]


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what a Flower run says about itself when it begins."""
    write_json(folder / FLOWER_ABOUT, about)


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a Flower run said about itself when it began, nothing if it did not."""
    return read_if_there(folder / FLOWER_ABOUT, "written by a Flower run")


def _check_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Refuse rounds that do not ascend, and values of other types than a journal holds."""
    before = 0
    for number, row in enumerate(rows, start=1):
        where = f"line {number} of {path}"
        before = check_int(f"round in {where}", row["round"], before + 1)
        _check_row(row, where)


def _check_row(row: Mapping[str, Any], where: str) -> None:
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
