"""The partition `shards`: each client gets a few blocks of samples sorted by label."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int
from fedcohort.data.partitions.dealing import (
    Sizes,
    check_nonempty_labels,
    client_sizes,
    group_by_owner,
    sort_by_label,
)


def shards(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    shards_per_client: int = 2,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Sort the samples by label, cut them into shards, and deal the shards at random.

    Each client so owns few labels.

    Args:
        labels: Label of each sample [N].
        num_clients: Number of clients, K.
        rng: Generator that deals.
        shards_per_client: Number of shards of each client.
        samples_per_client: One number for all clients or one per client. None divides all samples
            as evenly as possible.

    Returns:
        The sample indices of each client, ascending.

    Raises:
        ValueError: If there are too few samples for these clients or shards.

    Examples:
        >>> from fedcohort import stream
        >>> from fedcohort.data import PARTITIONS
        >>> labels = [0, 0, 1, 1]
        >>> parts = PARTITIONS["shards"](labels, 2, stream(0, "partition"), shards_per_client=1)
        >>> sorted(part.tolist() for part in parts)
        [[0, 1], [2, 3]]
    """
    labels = check_nonempty_labels(labels)
    sizes = client_sizes(len(labels), num_clients, samples_per_client)
    check_int("shards_per_client", shards_per_client, 1, int(sizes.min()))

    dealt = rng.permutation(len(labels))[: sizes.sum()]
    ordered = sort_by_label(dealt, labels)
    owners = rng.permutation(np.repeat(np.arange(num_clients), shards_per_client))
    lengths = _shard_lengths(owners, sizes, shards_per_client)
    return group_by_owner(ordered, np.repeat(owners, lengths), num_clients)


def _shard_lengths(owners: Ints, sizes: Ints, shards_per_client: int) -> Ints:
    """Return the length of each shard, so that the shards of each owner add up to its size.

    If the size of an owner is no multiple of its shards, its first shards are one longer.
    """
    position = np.empty(len(owners), np.int64)  # first, second, ... shard of its owner
    by_owner = np.argsort(owners, kind="stable")
    position[by_owner] = np.tile(np.arange(shards_per_client), len(sizes))
    size = sizes[owners]
    is_longer = position < size % shards_per_client
    return size // shards_per_client + is_longer
