"""The partition `independent-label`: every client draws by itself, most from one label."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_range
from fedcohort.data.partitions.dealing import Sizes, check_nonempty_labels, client_sizes


def independent_label(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    share: float = 0.8,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Let each client draw a primary label and its samples, whatever the others drew.

    This is what "independently samples" says in the paper. A client owns no sample twice, but a
    sample may have several owners, so that one client's test data may be another's training data.

    Args:
        labels: Label of each sample [N].
        num_clients: Number of clients, K.
        rng: Generator that draws labels and samples.
        share: Part of a client's samples that bears its primary label.
        samples_per_client: One number for all clients or one per client. None divides the number
            of samples as evenly as possible.

    Returns:
        The sample indices of each client, ascending.

    Raises:
        ValueError: If a client would own a sample twice.

    Examples:
        >>> from fedcohort import stream
        >>> from fedcohort.data import PARTITIONS, label_counts
        >>> labels = [0, 1] * 10
        >>> rng = stream(0, "partition")
        >>> parts = PARTITIONS["independent-label"](labels, 30, rng, samples_per_client=10)
        >>> sorted(set(label_counts(labels, parts, 2).max(axis=1).tolist()))
        [8]
    """
    labels = check_nonempty_labels(labels)
    check_range("share", share, 0, 1)
    sizes = client_sizes(len(labels), num_clients, samples_per_client, reuse=True)
    names = np.unique(labels)
    parts = []
    for size in sizes:
        primary = rng.choice(names)
        own_count = int(np.rint(share * size))
        own = _draw(np.flatnonzero(labels == primary), own_count, rng)
        others = _draw(np.flatnonzero(labels != primary), int(size) - own_count, rng)
        parts.append(np.sort(np.concatenate([own, others])))
    return parts


def _draw(samples: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Draw different samples; refuse if there are too few."""
    if count > len(samples):
        raise ValueError(
            "samples_per_client must leave each client with distinct samples, "
            f"but {count} are more than the {len(samples)} of its label, or of the others"
        )
    drawn: Ints = rng.choice(samples, count, replace=False)
    return drawn
