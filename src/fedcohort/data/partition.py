"""Who owns what: labels, num_clients, rng -> one ascending array of sample indices per client.

Every partition is disjoint (but `primary-label` with overlap=True) and the same for the same generator state. Common option
samples_per_client: one number for all, or one per client; by default all samples, divided as evenly as possible.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int, check_positive
from fedcohort.data.dataset import Array, labels_in
from fedcohort.data.primary import primary_label
from fedcohort.data.sizes import Sizes, client_sizes, some_labels

TRIES = 100


def iid(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Deal samples at random; labels do not matter."""
    available = len(some_labels(labels))
    sizes = client_sizes(available, num_clients, samples_per_client)
    return _cut(rng.permutation(available)[: sizes.sum()], sizes)


def shards(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    shards_per_client: int = 2,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Sort by label, cut into shards_per_client shards for each client, deal them at random: few labels per client."""
    labels = some_labels(labels)
    sizes = client_sizes(len(labels), num_clients, samples_per_client)
    check_int("shards_per_client", shards_per_client, 1, int(sizes.min()))
    pool = rng.permutation(len(labels))[: sizes.sum()]
    ordered = pool[np.argsort(labels[pool], kind="stable")]
    owners = rng.permutation(np.repeat(np.arange(num_clients), shards_per_client))
    turn = np.empty(len(owners), np.int64)  # which of its owner's shards each one is
    turn[np.argsort(owners, kind="stable")] = np.tile(np.arange(shards_per_client), num_clients)
    lengths = sizes[owners] // shards_per_client + (turn < sizes[owners] % shards_per_client)
    return _gather(ordered, np.repeat(owners, lengths), num_clients)


def dirichlet(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    alpha: float = 0.5,
    min_size: int = 10,
    samples_per_client: int | None = None,
) -> list[Ints]:
    """Divide each label by Dirichlet(alpha) proportions, redrawn until every client has min_size samples, at most 100 times.

    Client sizes differ: samples_per_client is their mean. A small alpha gives each client few labels, a large one nearly iid.
    """
    labels = some_labels(labels)
    check_positive("alpha", alpha)
    total = int(client_sizes(len(labels), num_clients, samples_per_client).sum())
    check_int("min_size", min_size, 1, total // num_clients)
    pool = rng.permutation(len(labels))[:total]
    ordered = pool[np.argsort(labels[pool], kind="stable")]
    per_label = np.unique(labels[ordered], return_counts=True)[1]
    for _ in range(TRIES):
        shares = rng.dirichlet(np.full(num_clients, float(alpha)), size=len(per_label))
        ends = np.rint(np.cumsum(shares, axis=1) * per_label[:, None]).astype(np.int64)
        ends[:, -1] = per_label  # the shares may add up to a little less than one
        counts = np.diff(ends, axis=1, prepend=0)
        if counts.sum(axis=0).min() >= min_size:
            owners = np.concatenate([np.repeat(np.arange(num_clients), row) for row in counts])
            return _gather(ordered, owners, num_clients)
    raise ValueError(
        f"alpha={alpha} left some of {num_clients} clients with fewer than min_size={min_size} of {total} samples in each of"
        f" {TRIES} draws: raise alpha, lower min_size or num_clients"
    )


def by_client(
    labels: npt.ArrayLike,
    num_clients: int | None,
    rng: np.random.Generator,
    *,
    clients: npt.ArrayLike,
    samples_per_client: int | None = None,
) -> list[Ints]:
    """Give each sample to its natural owner; num_clients of the owners are drawn (None: all), asking for more is an error.

    Clients are in the order of the column's values. samples_per_client is the most that one keeps, drawn at random.
    """
    labels, column = some_labels(labels), np.asarray(clients)
    if column.shape != labels.shape:
        raise ValueError(
            f"clients must have the shape of labels {labels.shape}, got {column.shape}"
        )
    _, owners = np.unique(column, return_inverse=True)
    parts = _gather(np.arange(len(column)), owners, int(owners.max()) + 1)
    if num_clients is not None:
        check_int("num_clients", num_clients, 1, len(parts))
        parts = [parts[i] for i in np.sort(rng.choice(len(parts), num_clients, replace=False))]
    if samples_per_client is not None:
        most = check_int("samples_per_client", samples_per_client, 1)
        parts = [np.sort(rng.permutation(part)[:most]) for part in parts]
    return parts


def label_counts(labels: npt.ArrayLike, parts: Sequence[Ints], num_classes: int) -> Ints:
    """Count each client's samples of each label, [K, C]: the picture of who owns what."""
    y = labels_in("labels", labels, 0, check_int("num_classes", num_classes, 1) - 1)
    return np.array(
        [np.bincount(y[part], minlength=num_classes) for part in parts], np.int64
    ).reshape(-1, num_classes)


def _cut(pool: Ints, sizes: Ints) -> list[Ints]:
    return [np.sort(part) for part in np.split(pool, np.cumsum(sizes)[:-1])]


def _gather(samples: Array, owners: Ints, num_clients: int) -> list[Ints]:
    """Return each owner's samples; owners[i] owns samples[i]."""
    grouped = samples[np.argsort(owners, kind="stable")]
    return _cut(grouped, np.bincount(owners, minlength=num_clients))


PARTITIONS: dict[str, Callable[..., list[Ints]]] = {
    "iid": iid,
    "primary-label": primary_label,
    "dirichlet": dirichlet,
    "shards": shards,
    "by-client": by_client,
}
