"""The partition `primary-label`, the paper's non-iid one: clients mostly own one label."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_range
from fedcohort.data.partitions.dealing import (
    Sizes,
    check_nonempty_labels,
    client_sizes,
    sort_by_label,
)


def primary_label(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    share: float = 0.8,
    overlap: bool = False,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Draw a primary label for each client, and take most of its samples from that label.

    The rest comes from the other labels, at random. All primary shares are dealt before any other
    sample, and in random order, so that a shortage does not depend on the clients' numbers.

    A label may run out. Then the rest of a share comes from the labels that still have samples, in
    proportion to what they have. So some clients own less than their share of their primary label,
    and the last may own more. With overlap, the label is used again instead, as in the simulator
    that the paper builds on: every share is exact, but a sample may have several owners, and one
    client's test data may be another client's training data. No client owns a sample twice.

    Args:
        labels: Label of each sample [N].
        num_clients: Number of clients, K.
        rng: Generator that draws labels and samples.
        share: Part of a client's samples that bears its primary label.
        overlap: Whether a label that has run out is used again.
        samples_per_client: One number for all clients or one per client. None divides all samples
            as evenly as possible.

    Returns:
        The sample indices of each client, ascending.

    Raises:
        ValueError: If there are too few samples, or a client would own a sample twice.

    Examples:
        >>> from fedcohort import stream
        >>> from fedcohort.data import PARTITIONS, label_counts
        >>> labels = [0, 1] * 100
        >>> rng = stream(0, "partition")
        >>> parts = PARTITIONS["primary-label"](labels, 3, rng, samples_per_client=10)
        >>> label_counts(labels, parts, 2).max(axis=1).tolist()
        [8, 8, 8]
    """
    labels = check_nonempty_labels(labels)
    check_range("share", share, 0, 1)
    sizes = client_sizes(len(labels), num_clients, samples_per_client, reuse=overlap)
    stock = _Stock(labels, overlap, rng)

    num_labels = len(stock.supply)
    primary = rng.integers(num_labels, size=num_clients)
    is_primary = np.eye(num_labels, dtype=np.int64)[primary]  # [K, C]
    shares = np.rint(share * sizes).astype(np.int64)
    if overlap:
        _check_distinct(stock.supply, primary, sizes, shares)

    parts = [np.empty(0, np.int64)] * num_clients
    for client in rng.permutation(num_clients):
        count = min(shares[client], stock.left()[primary[client]])
        parts[client] = stock.take(is_primary[client] * count)

    for client in rng.permutation(num_clients):
        others = stock.left() * (1 - is_primary[client])
        lacking = sizes[client] - len(parts[client])
        counts = rng.multivariate_hypergeometric(others, min(lacking, others.sum()))
        counts = counts + is_primary[client] * (lacking - counts.sum())
        rest = stock.take(counts)
        parts[client] = np.sort(np.concatenate([parts[client], rest]))
    return parts


class _Stock:
    """The samples of each label in random order, and how many of them are used."""

    def __init__(self, labels: Ints, overlap: bool, rng: np.random.Generator) -> None:
        self.samples = sort_by_label(rng.permutation(len(labels)), labels)
        self.supply = np.unique(labels, return_counts=True)[1]
        self.start = np.cumsum(self.supply) - self.supply
        self.used = np.zeros_like(self.supply)
        self.overlap = overlap

    def left(self) -> Ints:
        """Return how many samples of each label can be taken."""
        if self.overlap:
            return self.supply
        return self.supply - self.used

    def take(self, counts: Ints) -> Ints:
        """Take this many samples of each label, from its start again when it has run out."""
        taken = [np.empty(0, np.int64)]
        for label in np.flatnonzero(counts):
            positions = self.used[label] + np.arange(counts[label])
            taken.append(self.samples[self.start[label] + positions % self.supply[label]])
        self.used += counts
        return np.concatenate(taken)


def _check_distinct(supply: Ints, primary: Ints, sizes: Ints, shares: Ints) -> None:
    """Refuse a share that a client could fill only by owning a sample twice."""
    own_supply = supply[primary]
    other_supply = supply.sum() - own_supply
    rest = sizes - shares
    is_short = (shares > own_supply) | (rest > other_supply)
    if is_short.any():
        client = int(is_short.argmax())
        raise ValueError(
            "samples_per_client must leave each client with distinct samples, "
            f"but {shares[client]} of one label and {rest[client]} of the others are more than "
            f"the {own_supply[client]} and {other_supply[client]} there are"
        )
