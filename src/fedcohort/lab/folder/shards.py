"""The shards of a comparison: comparisons of some of its seeds, in folders of their own."""

import re
from contextlib import ExitStack
from pathlib import Path

from fedcohort.files import locked
from fedcohort.lab.folder.checkpoint import DAMAGED_CHECKPOINT
from fedcohort.lab.folder.comparison import discard_comparison, has_comparison

SHARDS = "shards"
_NAME = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")


def shard_folder(folder: Path, number: int, count: int) -> Path:
    """Return the run folder of one shard of the comparison in a folder."""
    return folder / SHARDS / f"{number}-of-{count}"


def shard_log(folder: Path, number: int, count: int) -> Path:
    """Return the file that takes what the process of a shard prints."""
    return folder / SHARDS / f"{number}-of-{count}.log"


def find_shards(folder: Path) -> dict[tuple[int, int], Path]:
    """Return the folders of shards by number and count, in the order of both."""
    shards = {}
    for path in (folder / SHARDS).glob("*-of-*"):
        match = _NAME.fullmatch(path.name)
        if match and path.is_dir():
            shards[int(match[1]), int(match[2])] = path
    return dict(sorted(shards.items()))


def has_unmerged_shards(folder: Path) -> bool:
    """Return whether a folder holds shards of a comparison, and not yet the comparison."""
    return not has_comparison(folder) and bool(find_shards(folder))


def discard_shards(folder: Path) -> None:
    """Remove the shards of a comparison, and leave everything else that is there.

    Raises:
        ValueError: If another process uses one of them. Nothing is removed then.
    """
    shards = find_shards(folder).values()
    with ExitStack() as stack:
        for path in shards:
            stack.enter_context(locked(path, "shard"))
        for path in shards:
            _discard_shard(path)
    home = folder / SHARDS
    for path in home.glob("*-of-*.log"):
        path.unlink()
    _remove_if_empty(home)


def _discard_shard(path: Path) -> None:
    discard_comparison(path)
    for damaged in path.glob(DAMAGED_CHECKPOINT.format("*")):
        damaged.unlink()
    for name in ("records", "allocations", "memory"):
        _remove_if_empty(path / name)
    _remove_if_empty(path)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
