"""From weights to inclusion probabilities: the paper's Algorithm 2 in closed form.

    p_i = min(1, sigma + (1 - sigma) w_i / theta),   sum p = k

    K num_clients, k cohort_size, sigma floor, R = k - K sigma spare,
    rho = R / (1 - sigma) slots, theta the weight cap

With weights sorted downwards and s_m the sum of all but the m largest, theta is the minimum
over m < rho of s_m / (rho - m). No cases are checked, unlike in the paper's search for
alpha = theta / (1 - sigma).

Weights come as logarithms, because E3CS's own weights overflow float64. They are centred on
rank ceil(rho), the largest that is never capped. Centred on the maximum, all other weights
would vanish beside one lucky client.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.checks import check_int, check_range

FAR_ABOVE = 100.0  # nats above rank ceil(rho): beyond any cap, as theta <= K w_(r) / (rho - r + 1)
LARGEST_LOG = 1e300
TIE = 1e-12  # relative width of the cap: clients on it are not capped, whatever the rounding


@dataclass(frozen=True, eq=False)
class Allocation:
    """Inclusion probabilities of all clients, and who is capped.

    Attributes:
        inclusion: Probabilities that sum to k, each between the floor and 1; 0 for clients
            that are not available. Shape [..., K].
        capped: The paper's S_t: clients whose weight lies above the cap, shape [..., K].
        log_cap: Logarithm of theta; inf where nobody can be capped (R = 0 or k = K).
            Shape [...].

    Examples:
        >>> allocate(np.log([1.0, 1.0, 1.0, 9.0]), cohort_size=2).capped
        array([False, False, False,  True])
    """

    inclusion: Floats
    capped: Bools
    log_cap: Floats


def allocate(log_weights: npt.ArrayLike, cohort_size: int, floor: float = 0.0) -> Allocation:
    """Spread k inclusion probabilities by weight, none below the floor or above 1.

    If k = K, everyone gets 1.

    Args:
        log_weights: Logarithms of the weights, shape [..., K].
        cohort_size: Number of clients to ask, k.
        floor: Smallest probability, sigma, between 0 and k/K.

    Returns:
        The allocation.

    Raises:
        ValueError: If a weight is not finite or an argument is out of bounds.

    Examples:
        >>> allocation = allocate(np.log([1.0, 2.0, 3.0, 4.0]), cohort_size=2)
        >>> allocation.inclusion.round(3).tolist()
        [0.2, 0.4, 0.6, 0.8]
    """
    logs = _check_log_weights(log_weights)
    num_clients = logs.shape[-1]
    size = check_int("cohort_size", cohort_size, 1, num_clients)
    fair_share = size / num_clients
    sigma = check_range("floor", floor, 0.0, fair_share * (1 + TIE))
    sigma = min(sigma, fair_share)

    rho = slots(size, num_clients, sigma)
    if not rho:
        return Allocation(
            inclusion=np.full(logs.shape, fair_share),
            capped=np.zeros(logs.shape, dtype=np.bool_),
            log_cap=np.full(logs.shape[:-1], np.inf),
        )

    log_cap = solve_log_cap(logs, rho)
    inclusion = np.minimum(logs - log_cap[..., None], 0.0)
    np.exp(inclusion, out=inclusion)  # min(1, w / theta)
    if sigma:
        inclusion *= 1 - sigma
        inclusion += sigma
    return Allocation(inclusion, above_cap(logs, log_cap), log_cap)


def allocate_present(
    log_weights: Floats, size: int, present: Bools | None, guaranteed: float = 0.0
) -> Allocation:
    """Allocate by weight among those present; all zeros if nobody is asked.

    Args:
        log_weights: Logarithms of the weights, shape [..., K].
        size: Number of clients to ask, at most as many as are present.
        present: Who may be asked, shape [..., K]; None for everyone.
        guaranteed: What of the size is spread evenly over those present, as their floor.

    Returns:
        The allocation.
    """
    if present is None and size:
        return allocate(log_weights, size, guaranteed / log_weights.shape[-1])
    everyone = np.ones(log_weights.shape, dtype=np.bool_)
    available = everyone if present is None else present
    count = np.maximum(available.sum(axis=-1), 1)
    return allocate_among(available, log_weights, size, np.asarray(guaranteed / count))


def allocate_among(
    available: Bools, log_weights: Floats, cohort_size: int | Ints, floors: Floats
) -> Allocation:
    """Allocate to the available clients alone; the others get 0 and are never capped.

    Args:
        available: Who may be asked, shape [..., K].
        log_weights: Logarithms of the weights, shape [..., K].
        cohort_size: Number of clients to ask, at most as many as are available: one for all
            rows or one for each, shape [...]. A row that asks nobody gets zeros.
        floors: Smallest probability of the available clients, shape [...].

    Returns:
        The allocation.
    """
    batch = log_weights.shape[:-1]
    inclusion = np.zeros(log_weights.shape)
    capped = np.zeros(log_weights.shape, dtype=np.bool_)
    log_cap = np.full(batch, np.inf)
    sizes = np.broadcast_to(cohort_size, batch)

    for row in np.ndindex(batch):
        if not sizes[row]:
            continue
        ids = np.flatnonzero(available[row])
        part = allocate(log_weights[row][ids], int(sizes[row]), float(floors[row]))
        inclusion[row][ids] = part.inclusion
        capped[row][ids] = part.capped
        log_cap[row] = part.log_cap
    return Allocation(inclusion, capped, log_cap)


def above_cap(log_weights: Floats, log_cap: Floats) -> Bools:
    """Return who is capped [..., K]: strictly above, so that no rounding caps a client on it."""
    above: Bools = log_weights > (log_cap + TIE)[..., None]
    return above


def slots(size: int, num_clients: int, sigma: float) -> float:
    """Return rho, the number of slots that are given by weight.

    It is 0 if everyone is asked or the floor takes all. It is rounded where only rounding
    errors keep it from being whole, because ranks must not depend on the last bit.
    """
    if size == num_clients:
        return 0.0
    rho = (size - num_clients * sigma) / (1 - sigma)
    nearest = round(rho)
    if abs(rho - nearest) <= TIE * num_clients:
        return float(nearest)
    return rho


def _check_log_weights(log_weights: npt.ArrayLike) -> Floats:
    logs = np.asarray(log_weights, dtype=np.float64)
    if logs.ndim == 0 or logs.shape[-1] == 0:
        raise ValueError(
            f"log_weights must be an array [..., K] with K of at least 1, got shape {logs.shape}"
        )
    is_finite = logs.max() <= LARGEST_LOG and logs.min() >= -LARGEST_LOG  # nan compares false
    if not is_finite:
        bad = logs[~(np.abs(logs) <= LARGEST_LOG)][0]
        raise ValueError(
            f"log_weights must be finite, between -{LARGEST_LOG} and {LARGEST_LOG}, got {bad}"
        )
    return logs


def solve_log_cap(logs: Floats, rho: float) -> Floats:
    """Return log theta in closed form: one sort, for any batch and any spread.

    Args:
        logs: Logarithms of the weights, shape [..., K].
        rho: Number of slots that are given by weight, above 0 (see `slots`).

    Returns:
        log theta, shape [...].
    """
    rank = ceil(rho)
    first = logs.shape[-1] - rank  # position of rank ceil(rho) in ascending order

    ascending = np.sort(logs, axis=-1)
    centre = ascending[..., first].copy()
    ascending -= centre[..., None]
    largest = ascending[..., first:]
    np.minimum(largest, FAR_ABOVE, out=largest)
    np.exp(ascending, out=ascending)

    sums = np.cumsum(largest, axis=-1)
    sums += ascending[..., :first].sum(axis=-1, keepdims=True)  # s_(r-1), ..., s_0
    sums /= rho - np.arange(rank - 1, -1, -1)  # s_m / (rho - m)
    log_cap: Floats = np.log(sums.min(axis=-1)) + centre
    return log_cap


def log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of exp(logs) along the last axis, [..., 1]."""
    largest = logs.max(axis=-1, keepdims=True)
    scaled = logs - largest
    weights = np.exp(scaled, out=scaled)
    total: Floats = largest + np.log(weights.sum(axis=-1, keepdims=True))
    return total
