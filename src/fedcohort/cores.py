"""The cores that this process may use."""

import os


def usable_cores() -> int:
    """Return how many threads may compute at once, at least 1.

    That is OMP_NUM_THREADS if it is set, as for all of PyTorch; otherwise the cores that the
    system gives this process, which may be fewer than the machine has.

    Examples:
        >>> from fedcohort.cores import usable_cores
        >>> usable_cores() >= 1
        True
    """
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if given.isascii() and given.isdecimal() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
