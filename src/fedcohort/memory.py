"""The memory of this machine: what cannot fit is refused before anything is allocated."""

import os

UNLIMITED = 2**62  # bytes; more than any machine has


def memory_limit() -> int:
    """Return the bytes that this process can have.

    They are the machine's memory, or the limit of the process if that is lower.

    Where the system does not say, the limit is 2**62 bytes.

    Examples:
        >>> from fedcohort.memory import memory_limit
        >>> memory_limit() > 0
        True
    """
    return min(_machine_memory(), _process_limit())


def check_memory(names: str, values: str, needed: int) -> None:
    """Refuse what needs more memory than there can be.

    Args:
        names: The arguments that decide how much is needed, for the message.
        values: Their values in words.
        needed: Bytes that are certainly needed.

    Raises:
        ValueError: If that is more than the limit.

    Examples:
        >>> from fedcohort.memory import check_memory
        >>> check_memory("seeds", "2 seeds", needed=16)
    """
    limit = memory_limit()
    if needed > limit:
        raise ValueError(
            f"{names} must fit the memory of {limit:,} bytes, got {values}, "
            f"which need at least {needed:,} bytes"
        )


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNLIMITED


def _process_limit() -> int:
    try:
        import resource
    except ModuleNotFoundError:
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
