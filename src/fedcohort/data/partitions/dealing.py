"""Steps that partitions share: how many samples each client gets, and dealing them out."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int
from fedcohort.data.samples import Array, check_labels

Sizes = int | Sequence[int] | Ints | None


def check_nonempty_labels(labels: npt.ArrayLike) -> Ints:
    """Return the labels as int64 [N], and refuse an empty array."""
    if np.size(labels) == 0:
        raise ValueError("labels must hold at least one sample, got none")
    return check_labels("labels", labels)


def client_sizes(
    num_samples: int, num_clients: int, samples_per_client: Sizes, reuse: bool = False
) -> Ints:
    """Return the number of samples of each client [K], at least one each.

    Args:
        num_samples: Number of samples that exist.
        num_clients: Number of clients, K.
        samples_per_client: One number for all clients or one per client. None divides all samples
            as evenly as possible.
        reuse: Whether clients may share samples, so that the sizes may add up to more.
    """
    may_exceed = reuse and samples_per_client is not None
    check_int("num_clients", num_clients, 1, None if may_exceed else num_samples)
    if samples_per_client is None:
        gets_one_more = np.arange(num_clients) < num_samples % num_clients
        return num_samples // num_clients + gets_one_more

    if np.ndim(samples_per_client) == 0:
        wanted = [samples_per_client] * num_clients
    else:
        wanted = list(np.asarray(samples_per_client))
    if len(wanted) != num_clients:
        raise ValueError(
            f"samples_per_client must be one number or one for each of {num_clients} clients, "
            f"got {len(wanted)}"
        )
    sizes = np.array([check_int("samples_per_client", size, 1) for size in wanted], np.int64)
    if sizes.sum() > num_samples and not reuse:
        raise ValueError(
            f"samples_per_client must add up to at most {num_samples}, the samples there are, "
            f"got {sizes.sum()}"
        )
    return sizes


def cut(samples: Array, sizes: Ints) -> list[Ints]:
    """Cut samples into consecutive parts of these sizes, each part ascending."""
    ends = np.cumsum(sizes)
    return [np.sort(part) for part in np.split(samples, ends[:-1])]


def group_by_owner(samples: Array, owners: Ints, num_clients: int) -> list[Ints]:
    """Return each client's samples, where owners[i] owns samples[i]."""
    grouped = samples[np.argsort(owners, kind="stable")]
    return cut(grouped, np.bincount(owners, minlength=num_clients))


def sort_by_label(samples: Ints, labels: Ints) -> Ints:
    """Return samples label after label, in the given order within each label."""
    return samples[np.argsort(labels[samples], kind="stable")]
