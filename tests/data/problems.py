"""Partition problems for hypothesis, and questions about the parts that come out."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def problems(draw, least=1):
    """Draw labels, a number of clients and a seed.

    There are at most 6 classes, some perhaps without samples, and `least` samples per client.
    """
    labels = draw(st.lists(st.integers(0, 5), min_size=least, max_size=150))
    clients = draw(st.integers(1, max(1, len(labels) // least)))
    return np.array(labels), clients, draw(st.integers(0, 99))


@st.composite
def sized(draw):
    """Draw a problem and sizes that can be met: None, one number, or one number per client."""
    labels, clients, seed = draw(problems())
    most = len(labels) // clients
    wish = (
        st.none()
        | st.integers(1, most)
        | st.lists(st.integers(1, most), min_size=clients, max_size=clients)
    )
    return labels, clients, seed, draw(wish)


def sizes_of(parts):
    """Return the number of samples of each client."""
    return [len(part) for part in parts]


def is_disjoint(parts, count):
    """Return whether no sample has two owners, and all samples lie in 0 .. count - 1."""
    samples = np.concatenate(parts)
    is_distinct = len(np.unique(samples)) == len(samples)
    return is_distinct and samples.min() >= 0 and samples.max() < count


def is_same(parts, others):
    """Return whether two partitions are equal."""
    return len(parts) == len(others) and all(
        np.array_equal(a, b) for a, b in zip(parts, others, strict=True)
    )
