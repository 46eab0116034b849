"""The partition `dirichlet`: each label is divided by random proportions."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int, check_positive
from fedcohort.data.partitions.dealing import (
    check_nonempty_labels,
    client_sizes,
    group_by_owner,
    sort_by_label,
)

MAX_TRIES = 100


def dirichlet(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    alpha: float = 0.5,
    min_size: int | None = None,
    samples_per_client: int | None = None,
) -> list[Ints]:
    """Divide each label by proportions from a Dirichlet distribution.

    The proportions are drawn again until every client has enough samples, at most 100 times.

    Args:
        labels: Label of each sample [N].
        num_clients: Number of clients, K.
        rng: Generator that draws the proportions.
        alpha: Concentration. A small one gives each client few labels, a large one nearly iid.
        min_size: Number of samples that every client must get. None stands for a quarter of the
            mean, at least 1 and at most 10: more is hardly ever drawn for everyone.
        samples_per_client: Mean number of samples of a client, since their sizes differ. None
            divides all samples.

    Returns:
        The sample indices of each client, ascending.

    Raises:
        ValueError: If there are too few samples, or no draw gave every client enough.

    Examples:
        >>> from fedcohort import stream
        >>> from fedcohort.data import PARTITIONS
        >>> labels = [0, 1, 2, 3] * 100
        >>> parts = PARTITIONS["dirichlet"](labels, 5, stream(0, "partition"), alpha=1.0)
        >>> sum(len(part) for part in parts)
        400
    """
    labels = check_nonempty_labels(labels)
    check_positive("alpha", alpha)
    total = int(client_sizes(len(labels), num_clients, samples_per_client).sum())
    mean = total // num_clients
    if min_size is None:
        min_size = min(10, max(1, mean // 4))
    check_int("min_size", min_size, 1, mean)

    dealt = rng.permutation(len(labels))[:total]
    ordered = sort_by_label(dealt, labels)
    label_sizes = np.unique(labels[ordered], return_counts=True)[1]
    for _ in range(MAX_TRIES):
        counts = _draw_counts(label_sizes, num_clients, alpha, rng)
        if counts.sum(axis=0).min() >= min_size:
            clients = np.tile(np.arange(num_clients), len(label_sizes))
            owners = np.repeat(clients, counts.ravel())
            return group_by_owner(ordered, owners, num_clients)
    raise ValueError(
        f"alpha={alpha} left some of {num_clients} clients with fewer than min_size={min_size} "
        f"of {total} samples in each of {MAX_TRIES} draws: "
        "raise alpha, lower min_size or num_clients"
    )


def _draw_counts(
    label_sizes: Ints, num_clients: int, alpha: float, rng: np.random.Generator
) -> Ints:
    """Return how many samples of each label each client gets [C, K]."""
    shares = rng.dirichlet(np.full(num_clients, float(alpha)), size=len(label_sizes))
    ends = np.rint(np.cumsum(shares, axis=1) * label_sizes[:, None]).astype(np.int64)
    ends[:, -1] = label_sizes  # the shares may add up to a little less than one
    return np.diff(ends, axis=1, prepend=0)
