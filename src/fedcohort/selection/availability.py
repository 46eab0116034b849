"""Who may be asked: masks of available clients, and choices among them."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.rng import Rng


def present_mask(
    available: npt.ArrayLike | None, num_clients: int, batch: tuple[int, ...]
) -> Bools | None:
    """Return who may be asked as a mask [..., K], or None if everyone may.

    Args:
        available: A mask [K] or [..., K] of bools, an array of client ids, or None.
        num_clients: Number of clients in the federation, K.
        batch: Shape of the runs in lock-step, () for one run.

    Raises:
        ValueError: If `available` is neither, or names a client that does not exist.
    """
    if available is None:
        return None
    values = np.asarray(available)
    shape = (*batch, num_clients)

    if values.dtype == np.bool_:
        if values.shape not in ((num_clients,), shape):
            raise ValueError(f"available must have shape {shape}, got {values.shape}")
        # A copy, because the caller may reuse the array before the update.
        return np.broadcast_to(values, shape).copy()

    is_integer = np.issubdtype(values.dtype, np.integer) or values.size == 0
    if values.ndim != 1 or not is_integer:
        raise ValueError(
            f"available must be a mask of {num_clients} clients or an array of client ids, "
            f"got {available!r}"
        )
    mask = np.zeros(num_clients, dtype=np.bool_)
    mask[_check_ids(values, num_clients)] = True
    return np.broadcast_to(mask, shape)


def _check_ids(values: npt.NDArray[np.integer], num_clients: int) -> Ints:
    strangers = values[(values < 0) | (values >= num_clients)]
    if strangers.size:
        raise ValueError(
            f"available must hold client ids between 0 and {num_clients - 1}, got {strangers[0]}"
        )
    ids, counts = np.unique(values.astype(np.int64), return_counts=True)
    if ids.size < values.size:
        raise ValueError(
            f"available must hold distinct client ids, got {ids[counts > 1][0]} twice; "
            "a mask must be of bools"
        )
    return ids


def count_present(present: Bools | None, num_clients: int) -> Ints:
    """Return how many clients may be asked, [...]."""
    if present is None:
        return np.asarray(num_clients)
    return np.asarray(present.sum(axis=-1))


def reachable_size(cohort_size: int, present: Bools | None) -> int:
    """Return how many clients can be asked: k, or all who are present if they are fewer.

    Raises:
        ValueError: If runs in lock-step would get cohorts of different sizes.
    """
    if present is None:
        return cohort_size
    sizes = np.minimum(present.sum(axis=-1), cohort_size)
    if (sizes != sizes.flat[0]).any():
        raise ValueError(
            "available must leave every run in lock-step the same cohort size, "
            f"got between {sizes.min()} and {sizes.max()}"
        )
    return int(sizes.flat[0])


def smallest(keys: Floats, size: int, present: Bools | None) -> Ints:
    """Return the clients with the smallest keys among those present, in order of their keys.

    Args:
        keys: One finite value per client, shape [..., K].
        size: Number of clients to return, at most as many as are present.
        present: Who may be asked, shape [..., K]; None for everyone.

    Returns:
        Client ids, shape [..., size].
    """
    if present is not None:
        keys = np.where(present, keys, np.inf)
    if size == keys.shape[-1]:
        return np.argsort(keys, axis=-1)
    first = np.argpartition(keys, size, axis=-1)[..., :size]
    return pick(first, np.argsort(pick(keys, first), axis=-1))


def highest(scores: Floats, size: int, present: Bools | None, rng: Rng) -> Ints:
    """Return the clients with the highest scores among those present; ties fall at random.

    Args:
        scores: One value per client, shape [..., K]; infinities are allowed.
        size: Number of clients to return, at most as many as are present.
        present: Who may be asked, shape [..., K]; None for everyone.
        rng: Source of randomness.

    Returns:
        Client ids in ascending order, shape [..., size].
    """
    keys: list[Floats | Bools] = [rng.random(scores.shape), -scores]
    if present is not None:
        keys.append(~present)
    best_first = np.lexsort(keys, axis=-1)
    return np.sort(best_first[..., :size], axis=-1)
