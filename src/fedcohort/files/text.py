"""Text formats, in UTF-8 on every machine: JSON, JSON lines, flat TOML and CSV."""

import csv
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.checks import one_line
from fedcohort.files.paths import atomic_write, check_file
from fedcohort.files.seal import (
    BLANK,
    COMMENT,
    FORMATS,
    JSON,
    KEY,
    check_content,
    seal_content,
    sealed_write,
)


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole."""
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole."""
    with atomic_write(path) as draft:
        draft.write_bytes(content)


def read_text(path: Path) -> str:
    """Return the text of a small file.

    Raises:
        ValueError: If the file cannot be read, or is no text.
    """
    check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be a text file, got: {error}") from None


def write_sealed_text(path: Path, text: str) -> None:
    """Write a text file as a whole, with its seal as a comment in the first line."""
    with sealed_write(path) as draft:
        draft.write_text(COMMENT + text, encoding="utf-8")


def read_sealed_text(path: Path) -> str:
    """Return the text of a file, after a check of its seal.

    Raises:
        ValueError: If the text does not fit the seal, or is none.
        OSError: If the file cannot be read.
    """
    check_file(path)
    content = path.read_bytes()
    check_content(content, FORMATS[path.suffix])
    return content.decode()


def write_json(path: Path, table: Mapping[str, Any], indent: int | None = 2) -> None:
    """Write a table as JSON, with its seal as the first key and a line break at the end."""
    with sealed_write(path) as draft:
        draft.write_text(json.dumps({KEY: BLANK, **table}, indent=indent) + "\n")


def read_json_table(path: Path, purpose: str) -> dict[str, Any]:
    """Return the table (a JSON object) that a file holds, without its seal.

    Args:
        path: The file to read.
        purpose: What the file must be, for the message: "the cost of a run".

    Raises:
        ValueError: If the file cannot be read, is damaged, is no JSON, or holds no table.
    """
    try:
        value = parse_json(read_sealed_text(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be {purpose}, got: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} must be {purpose}, got a JSON {type(value).__name__}")
    value.pop(KEY, None)
    return value


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: If the text is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def to_json_line(row: Mapping[str, Any]) -> str:
    """Return a table as one sealed line of JSON, with a line break at the end."""
    line = json.dumps({KEY: BLANK, **row}).encode()
    return seal_content(line, JSON).decode() + "\n"


def read_json_lines(
    path: Path, purpose: str, keys: Sequence[str], optional: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return these keys of every line, each line a JSON object that fits its seal.

    A last line without a line break is left out unless it is complete: it may still be being
    written.

    Args:
        path: The file to read.
        purpose: What the file must be, for the message.
        keys: The keys that every line must have; others are dropped.
        optional: Keys that a line may have.

    Raises:
        ValueError: If the file or a line cannot be read.
    """
    check_file(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} must be {purpose}, got: {error}") from None
    return parse_json_lines(content, path, keys, optional)


def parse_json_lines(
    content: bytes, path: Path, keys: Sequence[str], optional: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return these keys of every line of a file's content, as `read_json_lines` does."""
    *lines, rest = content.split(b"\n")
    if _is_line(rest, keys):
        lines.append(rest)
    elif _is_line(rest[:-1], keys):
        raise ValueError(f"{path} must hold one round per line, got a line break that is damaged")

    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(_parse_line(line, keys, optional))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} must hold one round per line, got line {number}: {_describe(error, line)}"
            ) from None
    return rows


def _describe(error: Exception, line: bytes) -> str:
    """Say what is wrong with a line."""
    if isinstance(error, KeyError):
        return f"the field {error.args[0]} is missing"
    if isinstance(error, TypeError | json.JSONDecodeError):
        return f"{line[:40]!r} is no JSON object"
    return one_line(error)


def _is_line(line: bytes, keys: Sequence[str]) -> bool:
    try:
        _parse_line(line, keys)
    except (ValueError, KeyError, TypeError):
        return False
    return True


def _parse_line(line: bytes, keys: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    check_content(line, JSON)
    row = parse_json(line.decode())
    kept = {key: row[key] for key in keys}
    for key in optional:
        if key in row:
            kept[key] = row[key]
    return kept


def read_toml(path: Path, is_sealed: bool = False) -> dict[str, Any]:
    """Return the settings in a TOML file.

    Args:
        path: The file to read.
        is_sealed: Whether the file must fit its seal. A user may edit his own file, but not the
            settings of a run.

    Raises:
        ValueError: If the file cannot be read, is no TOML, or does not fit its seal.
    """
    check_file(path)
    try:
        # Some editors begin a file with a byte order mark, which TOML does not know.
        text = read_sealed_text(path) if is_sealed else path.read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
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
    with atomic_write(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        if rows:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
