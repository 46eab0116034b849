"""The seal: a SHA-256 checksum inside every file that is read back.

The seal is part of the file that it protects. So it takes its place in the same atomic step, no
crash can leave a file beside the checksum of another, and a file that is copied or renamed keeps
it. A list of checksums beside the files would have neither property.

Each format has a place for it that other tools ignore:

    .json, .jsonl     the first key of the table, or of the table in each line
    .toml, .sha256    a comment in the first line
    .npz              the comment of the zip archive
    .safetensors      the first key of the state in the metadata
    .parquet          a key of the footer's metadata

The checksum is that of the file with zeros in the place of the checksum. It is checked before
anything is parsed. Files without a seal were written before there were seals; they are parsed
with care, as foreign ones are.
"""

import hashlib
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fedcohort.files.paths import atomic_write

KEY = "fedcohort-sha256"
BLANK = "0" * 64
COMMENT = f"# {KEY}: {BLANK}\n"
ZIP_COMMENT = f"{KEY}: {BLANK}"

Content = bytes | mmap.mmap


class Format(NamedTuple):
    """How to find the seal in a format.

    Attributes:
        seal: Matches a seal; the group is the checksum.
        remains: Matches what a damaged seal may leave. Nothing else begins like that.
    """

    seal: re.Pattern[bytes]
    remains: re.Pattern[bytes]


def _format(seal: str, remains: str) -> Format:
    key_and_checksum = seal.replace("KEY", KEY).replace("SUM", "([0-9a-f]{64})")
    patterns = (key_and_checksum, remains.replace("KEY", KEY))
    return Format(*(re.compile(pattern.encode(), re.DOTALL) for pattern in patterns))


JSON = _format(
    r'\A\{\s*"KEY": "SUM"',
    # The key, a key and a checksum of their lengths, or what a cut leaves of the checksum.
    r'\A\{\s*"(?:KEY|[^"]{16}": "[^"]{64}"|[^"]*[0-9a-f]{20}|[^"]*": "[0-9a-f]{20})',
)
COMMENTED = _format(r"\A# KEY: SUM\n", r"\A#")
FORMATS = {
    ".json": JSON,
    ".toml": COMMENTED,
    ".sha256": COMMENTED,
    ".npz": _format(r"KEY: SUM\Z", r"KEY"),
    ".safetensors": _format(
        r'"state":"\{\\"KEY\\": \\"SUM\\"', r'"state":"\{\\"[^"]{16}\\": \\"[^"]{64}\\"'
    ),
    ".parquet": _format(r"KEY\x18@SUM", r"KEY"),  # a string of 64 bytes in Thrift
}


@contextmanager
def sealed_write(path: Path, previous: Path | None = None) -> Iterator[Path]:
    """Yield a draft that is sealed and takes the place of the target when the block ends.

    Args:
        path: The file to write. What the block writes must hold the blank seal of its format.
        previous: Where to keep the file that is replaced, if there is one.

    Yields:
        The path of the draft, with the suffix of the target.
    """
    with atomic_write(path, previous) as draft:
        yield draft
        _seal_file(draft)


def check_seal(file: BinaryIO, suffix: str) -> None:
    """Refuse an open file that does not fit its seal; one without a seal passes.

    Args:
        file: The file, open for reading.
        suffix: The suffix of its name, which says its format.

    Raises:
        ValueError: If the file has changed since it was sealed. The caller says which it is.
    """
    size = file.seek(0, 2)
    file.seek(0)
    if size:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            check_content(content, FORMATS[suffix])


def check_content(content: Content, format: Format) -> None:
    """Refuse content that does not fit its seal; content without a seal passes.

    Raises:
        ValueError: If the content has changed since it was sealed.
    """
    found = _find(content, format)
    if found is None:
        if format.remains.search(content, *_region(content, format)):
            raise ValueError("a file that is damaged or was changed: its checksum cannot be read")
        return
    if _digest(content, found.start(1)) != found[1]:
        raise ValueError("a file that is damaged or was changed: its checksum does not fit")


def seal_content(content: bytes, format: Format) -> bytes:
    """Return content with the checksum in the place of the zeros.

    Raises:
        ValueError: If the content has no blank seal.
    """
    found = _find(content, format)
    if found is None or found[1] != BLANK.encode():
        raise ValueError(f"content must hold a blank seal, got {content[:100]!r}")
    return content[: found.start(1)] + _digest(content, found.start(1)) + content[found.end(1) :]


def _seal_file(path: Path) -> None:
    with path.open("rb+") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = _find(content, FORMATS[path.suffix])
            if found is None or found[1] != BLANK.encode():
                raise ValueError(f"{path} must hold a blank seal, got none")
            digest = _digest(content, found.start(1))
            place = found.start(1)
        file.seek(place)
        file.write(digest)


def _find(content: Content, format: Format) -> re.Match[bytes] | None:
    """Return the last seal in the region where a format keeps it."""
    found = None
    for match in format.seal.finditer(content, *_region(content, format)):
        found = match
    return found


def _region(content: Content, format: Format) -> tuple[int, int]:
    """Return where a seal may lie. Arrays, which may hold any bytes, lie elsewhere."""
    size = len(content)
    if format is FORMATS[".npz"]:
        return max(0, size - len(ZIP_COMMENT)), size
    if format is FORMATS[".safetensors"]:
        header = int.from_bytes(content[:8], "little")
        return 0, min(size, 8 + header)
    if format is FORMATS[".parquet"]:
        footer = int.from_bytes(content[-8:-4], "little")
        return max(0, size - 8 - footer), size
    return 0, size


def _digest(content: Content, place: int) -> bytes:
    """Return the checksum of content with zeros at this place."""
    digest = hashlib.sha256()
    with memoryview(content) as view:
        digest.update(view[:place])
        digest.update(BLANK.encode())
        digest.update(view[place + len(BLANK) :])
    return digest.hexdigest().encode()
