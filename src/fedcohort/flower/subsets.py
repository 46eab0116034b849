"""Find the replies that a strategy cannot aggregate."""

from collections.abc import Callable, Sequence

MOST_TRIES = 32
MOST_SINGLES = 16  # of so many replies each is left out once


def find_working_subset(
    count: int, works: Callable[[list[int]], bool], most_tries: int = MOST_TRIES
) -> list[int]:
    """Return a large subset of 0 … count - 1 that works, given that all together do not.

    First each element is left out alone, since most often one is to blame. Then a subset is grown
    by halves. If it stays small, another one is grown from the elements it left out.

    Args:
        count: Number of elements.
        works: Whether a subset, in ascending order, works.
        most_tries: How often `works` is called at most.

    Returns:
        The largest subset found, in ascending order; empty if none works.
    """
    everyone = list(range(count))
    tried: dict[tuple[int, ...], bool] = {tuple(everyone): False}

    def check(subset: Sequence[int]) -> bool:
        key = tuple(sorted(subset))
        if not key:
            return False
        if key not in tried and len(tried) <= most_tries:
            tried[key] = works(list(key))
        return tried.get(key, False)

    if count <= MOST_SINGLES:
        for left_out in everyone:
            rest = [element for element in everyone if element != left_out]
            if check(rest):
                return rest

    kept = _grow(everyone, check)
    if 2 * len(kept) < count:
        left_out_first = [element for element in everyone if element not in kept] + kept
        kept = max(kept, _grow(left_out_first, check), key=len)
    return kept


def _grow(order: list[int], works: Callable[[Sequence[int]], bool]) -> list[int]:
    """Add elements in this order, block by block; a block that does not work is halved."""
    kept: list[int] = []
    blocks = [order]
    while blocks:
        block = blocks.pop(0)
        if works([*kept, *block]):
            kept += block
        elif len(block) > 1:
            half = len(block) // 2
            blocks = [block[:half], block[half:], *blocks]
    return sorted(kept)
