"""How many samples there are to deal, and how many each client gets."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int
from fedcohort.data.dataset import labels_in

Sizes = int | Sequence[int] | Ints | None


def some_labels(labels: npt.ArrayLike) -> Ints:
    """Return the labels as int64 [N]; with no sample there is nothing to deal, which is refused."""
    if np.size(labels) == 0:
        raise ValueError("labels must hold at least one sample, got none")
    return labels_in("labels", labels)


def client_sizes(available: int, num_clients: int, wanted: Sizes, reuse: bool = False) -> Ints:
    """Return the K client sizes, none empty: as even as possible, or as wanted; more than there are only with reuse."""
    check_int("num_clients", num_clients, 1, None if reuse and wanted is not None else available)
    if wanted is None:
        return available // num_clients + (np.arange(num_clients) < available % num_clients)
    each = [wanted] * num_clients if np.ndim(wanted) == 0 else list(np.asarray(wanted))
    if len(each) != num_clients:
        raise ValueError(
            f"samples_per_client must be one number or one for each of {num_clients} clients, got {len(each)}"
        )
    sizes = np.array([check_int("samples_per_client", size, 1) for size in each], np.int64)
    if sizes.sum() > available and not reuse:
        raise ValueError(
            f"samples_per_client must add up to at most {available}, the samples there are, got {sizes.sum()}"
        )
    return sizes
