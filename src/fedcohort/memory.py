"""The memory of this machine: what cannot fit is refused before anything is allocated."""

import os
from pathlib import Path, PurePosixPath
from typing import NamedTuple

UNLIMITED = 2**62  # bytes; more than any machine has
ROOT = Path("/")  # where the system says what it has


class _CgroupKind(NamedTuple):
    """Where a version of Linux's control groups says what a group may have and has."""

    controller: str
    mount: str
    limit: str
    usage: str
    caches: tuple[str, ...]


CGROUPS = (
    _CgroupKind(
        controller="",  # version 2 has one group for everything
        mount="sys/fs/cgroup",
        limit="memory.max",
        usage="memory.current",
        caches=("active_file", "inactive_file"),
    ),
    _CgroupKind(
        controller="memory",
        mount="sys/fs/cgroup/memory",
        limit="memory.limit_in_bytes",
        usage="memory.usage_in_bytes",
        caches=("total_active_file", "total_inactive_file"),
    ),
)


def available_memory() -> int:
    """Return the bytes that this process can still have.

    They are what the machine has available, or what the control group or the limit of the process
    leaves if that is less. A system that says how much memory it has but not how much is available
    counts with all of it. Where the system says nothing, the answer is 2**62 bytes.

    Examples:
        >>> from fedcohort.memory import available_memory
        >>> available_memory() > 0
        True
    """
    return min(_machine_memory(), _group_memory(), _process_limit())


def check_memory(names: str, values: str, needed: int) -> None:
    """Refuse what needs more memory than is available.

    Args:
        names: The arguments that decide how much is needed, for the message.
        values: Their values in words.
        needed: Bytes that are certainly needed.

    Raises:
        ValueError: If that is more than is available.

    Examples:
        >>> from fedcohort.memory import check_memory
        >>> check_memory("seeds", "2 seeds", needed=16)
    """
    available = available_memory()
    if needed > available:
        raise ValueError(
            f"{names} must fit the {available:,} bytes of memory that are available, "
            f"got {values}, which need at least {needed:,} bytes"
        )


def _machine_memory() -> int:
    """Return what Linux says is available; elsewhere all memory of the machine."""
    kilobytes = _read_fields(ROOT / "proc/meminfo").get("MemAvailable:")
    if kilobytes is not None:
        return 1024 * kilobytes
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNLIMITED


def _group_memory() -> int:
    """Return what the control groups of this process leave, of version 1 and 2."""
    least = UNLIMITED
    for line in _read_text(ROOT / "proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        for kind in CGROUPS:
            if kind.controller not in controllers.split(","):
                continue
            # The limits of the groups around a group hold for it as well. In a container the path
            # may be one of the host, and then only the last of these folders is there.
            inside = PurePosixPath(path.lstrip("/"))
            for part in (inside, *inside.parents):
                least = min(least, _left_in_group(ROOT / kind.mount / part, kind))
    return least


def _left_in_group(folder: Path, kind: _CgroupKind) -> int:
    """Return the limit of a control group less its usage; caches of files give way."""
    limit = _read_text(folder / kind.limit).strip()
    usage = _read_text(folder / kind.usage).strip()
    if not limit.isdecimal() or not usage.isdecimal():  # "max", or no such file
        return UNLIMITED
    counts = _read_fields(folder / "memory.stat")
    cached = sum(counts.get(name, 0) for name in kind.caches)
    return max(0, int(limit) - int(usage) + cached)


def _read_text(path: Path) -> str:
    """Return the text of a file, nothing if there is no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_fields(path: Path) -> dict[str, int]:
    """Return the numbers of a file that has lines of a name, a number, and perhaps a unit."""
    numbers = {}
    for line in _read_text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[1].isdecimal():
            numbers[words[0]] = int(words[1])
    return numbers


def _process_limit() -> int:
    try:
        import resource
    except ModuleNotFoundError:
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
