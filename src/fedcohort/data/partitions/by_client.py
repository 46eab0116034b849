"""The partition `by-client`: each sample goes to its natural owner."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int
from fedcohort.data.partitions.dealing import check_nonempty_labels, group_by_owner


def by_client(
    labels: npt.ArrayLike,
    num_clients: int | None,
    rng: np.random.Generator,
    *,
    clients: npt.ArrayLike,
    samples_per_client: int | None = None,
) -> list[Ints]:
    """Give each sample to its natural owner, as the dataset names it.

    Args:
        labels: Label of each sample [N].
        num_clients: Number of owners to draw, K. None takes all of them.
        rng: Generator that draws owners, and their samples if there are too many.
        clients: Owner of each sample [N], as numbers or words.
        samples_per_client: Largest number of samples that an owner keeps. None keeps all.

    Returns:
        The sample indices of each client, ascending. Clients are in the order of the owners' names.

    Raises:
        ValueError: If there are fewer owners than clients, or not one owner per sample.

    Examples:
        >>> from fedcohort import stream
        >>> from fedcohort.data import PARTITIONS
        >>> owners = ["bob", "ann", "bob"]
        >>> parts = PARTITIONS["by-client"]([0, 1, 1], None, stream(0, "partition"), clients=owners)
        >>> [part.tolist() for part in parts]
        [[1], [0, 2]]
    """
    labels = check_nonempty_labels(labels)
    names = np.asarray(clients)
    if names.shape != labels.shape:
        raise ValueError(f"clients must have the shape of labels {labels.shape}, got {names.shape}")
    _, owners = np.unique(names, return_inverse=True)
    parts = group_by_owner(np.arange(len(names)), owners, int(owners.max()) + 1)

    if num_clients is not None:
        check_int("num_clients", num_clients, 1, len(parts))
        chosen = rng.choice(len(parts), num_clients, replace=False)
        parts = [parts[owner] for owner in np.sort(chosen)]
    if samples_per_client is not None:
        check_int("samples_per_client", samples_per_client, 1)
        parts = [np.sort(rng.permutation(part)[:samples_per_client]) for part in parts]
    return parts
