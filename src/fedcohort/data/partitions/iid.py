"""The partition `iid`: samples dealt at random."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.data.partitions.dealing import Sizes, check_nonempty_labels, client_sizes, cut


def iid(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Deal samples at random, whatever their labels.

    Args:
        labels: Label of each sample [N].
        num_clients: Number of clients, K.
        rng: Generator that deals.
        samples_per_client: One number for all clients or one per client. None divides all samples
            as evenly as possible.

    Returns:
        The sample indices of each client, ascending.

    Raises:
        ValueError: If there are too few samples for these clients.

    Examples:
        >>> from fedcohort import stream
        >>> from fedcohort.data import PARTITIONS
        >>> parts = PARTITIONS["iid"]([0, 1] * 5, 3, stream(0, "partition"))
        >>> [len(part) for part in parts]
        [4, 3, 3]
    """
    num_samples = len(check_nonempty_labels(labels))
    sizes = client_sizes(num_samples, num_clients, samples_per_client)
    dealt = rng.permutation(num_samples)[: sizes.sum()]
    return cut(dealt, sizes)
