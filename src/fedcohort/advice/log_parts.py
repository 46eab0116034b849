"""Names and times of a log, as they are read."""

import numpy as np

from fedcohort.arrays import Floats


def replace_zero_times(seconds: Floats) -> tuple[Floats, list[str]]:
    """Return times above 0, and a note if some were 0: a clock of whole seconds writes that.

    Args:
        seconds: Answer times, at least 0 or nan [n].
    """
    is_zero = seconds == 0
    if not is_zero.any():
        return seconds, []
    above = seconds[seconds > 0]
    if not above.size:
        note = "All answer times are 0 s: the answers count, their times do not."
        return np.full(len(seconds), np.nan), [note]
    half = float(above.min()) / 2
    note = (
        f"{is_zero.sum()} answer times are 0 s, less than the clock tells apart: they count as "
        f"{half:.3g} s, half of the shortest other time."
    )
    return np.where(is_zero, half, seconds), [note]


def sort_names(names: set[str]) -> tuple[str, ...]:
    """Return names in order: whole numbers by value, other names by their letters.

    Examples:
        >>> sort_names({"10", "9", "edge"})
        ('9', '10', 'edge')
    """

    def key(name: str) -> tuple[int, int, str]:
        is_number = name.isascii() and name.isdigit() and len(name) < 19
        return (0, int(name), name) if is_number else (1, 0, name)

    return tuple(sorted(names, key=key))
