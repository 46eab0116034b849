"""Text formats: JSON, JSON lines, flat TOML and CSV."""

import csv
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.files.paths import atomic_write, check_file


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole."""
    with atomic_write(path) as draft:
        draft.write_text(text)


def read_text(path: Path) -> str:
    """Return the text of a small file.

    Raises:
        ValueError: If the file cannot be read, or is no text.
    """
    check_file(path)
    try:
        return path.read_text()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be a text file, got: {error}") from None


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write a value as JSON, with a line break at the end."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


def read_json_table(path: Path, purpose: str) -> dict[str, Any]:
    """Return the table (a JSON object) that a file holds.

    Args:
        path: The file to read.
        purpose: What the file must be, for the message: "the cost of a run".

    Raises:
        ValueError: If the file cannot be read, is no JSON, or holds no table.
    """
    check_file(path)
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be {purpose}, got: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} must be {purpose}, got a JSON {type(value).__name__}")
    return value


def read_json_lines(path: Path, purpose: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return these keys of every line, each line a JSON object.

    A last line that cannot be read is left out: it may still be being written.

    Args:
        path: The file to read.
        purpose: What the file must be, for the message.
        keys: The keys that every line must have; others are dropped.

    Raises:
        ValueError: If the file or a line before the last cannot be read.
    """
    check_file(path)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be {purpose}, got: {error}") from None

    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            rows.append({key: row[key] for key in keys})
        except (ValueError, KeyError, TypeError) as error:
            if number < len(lines):
                message = f"{path} must hold one round per line, got line {number}: {error!r}"
                raise ValueError(message) from None
    return rows


def read_toml(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file.

    Raises:
        ValueError: If the file cannot be read or is no TOML.
    """
    check_file(path)
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be a settings file in TOML, got: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} must be flat settings in TOML, got deeply nested ones") from None


def to_toml(settings: Mapping[str, Any]) -> str:
    """Return flat settings as TOML; a setting that is None is left out."""
    lines = []
    for name, value in settings.items():
        if value is not None:
            lines.append(f"{name} = {_toml_value(value)}\n")
    return "".join(lines)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_value(part) for part in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def save_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV with the keys of the first as header; without rows, an empty file."""
    with atomic_write(path) as draft, draft.open("w", newline="") as file:
        if rows:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
