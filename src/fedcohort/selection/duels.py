"""Duels of the pivotal method: where is the client astride a border drawn?

A stratum is a unit of the line on which the clients lie end to end, and gives one client.
"""

import numpy as np

from fedcohort.arrays import Bools, Floats


def takes_left(meets: Bools, head: Floats, tail: Floats, draws: Floats) -> Bools:
    """Return in which strata the client astride the left border is drawn.

    Args:
        meets: Whether the place in the stratum before the border fell on the client astride,
            one per border, [n - 1].
        head: How far that client reaches beyond the border, [n - 1].
        tail: How far before the border it starts, [n - 1].
        draws: Uniform numbers, [n - 1].

    Returns:
        One value per stratum, [n].
    """
    is_right = np.append(meets, False)
    chance = head / np.where(tail < 1, 1 - tail, np.inf)
    wants_left = np.append(False, draws < chance)
    drawn_right = _carry(is_right, wants_left)
    is_left: Bools = wants_left & np.append(False, ~drawn_right[:-1])
    return is_left


def _carry(is_right: Bools, wants_left: Bools) -> Bools:
    """Return s_j = is_right_j and (not wants_left_j or s_(j-1)) for all strata at once.

    Few strata depend on the one before. Each of them gets the value of the last stratum that
    does not; the first never depends.
    """
    carried = is_right.copy()
    depends = np.flatnonzero(is_right & wants_left)
    chain = depends - np.arange(depends.size)  # the same for neighbours
    first = depends[np.searchsorted(chain, chain)]
    carried[depends] = is_right[first - 1]
    return carried
