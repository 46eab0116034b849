"""Comparison of selectors' states."""

import numpy as np


def same_state(one, other):
    """Return whether two states are equal, arrays and nested states included."""
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return False
        return all(same_state(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return one == other
