"""From weights to inclusion probabilities (the paper's ProbAlloc, solved in closed form).

    p_i = min(1, sigma + (1 - sigma) w_i / theta),   sum p = k

    K num_clients, k cohort_size, sigma floor, R = k - K sigma spare, rho = R / (1 - sigma), theta the weight cap.

With weights sorted downwards and s_m the sum of all but the m largest, theta = min over m < rho of s_m / (rho - m): no
case is checked, unlike the paper's search for alpha = theta / (1 - sigma). Weights come as logarithms, since E3CS's own
overflow float64; they are centred on rank ceil(rho), the largest that is never capped, and not on the maximum, beside
which one lucky client makes all others vanish.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats
from fedcohort.checks import check_int, check_range

FAR_ABOVE = 100.0  # nats above rank ceil(rho): beyond any cap, as theta <= K w_(r) / (rho - r + 1)
LARGEST_LOG = 1e300
TIE = 1e-12  # relative width of the cap: clients on it are not capped, whatever the rounding


@dataclass(frozen=True, eq=False)
class Allocation:
    """Inclusion probabilities and what was capped on the way.

    inclusion: [..., K] sums to k, between the floor and 1 (0 for clients not available).
    capped:    [..., K] the paper's S_t: clients whose weight lies above the cap.
    log_cap:   [...]    log theta; inf where nothing can be capped (R = 0 or k = K).
    """

    inclusion: Floats
    capped: Bools
    log_cap: Floats


def allocate(log_weights: npt.ArrayLike, cohort_size: int, floor: float = 0.0) -> Allocation:
    """Spread k inclusion probabilities by weight, none below the floor or above 1; with k = K everyone gets 1."""
    logs = np.asarray(log_weights, dtype=np.float64)
    if logs.ndim == 0 or logs.shape[-1] == 0:
        raise ValueError(
            f"log_weights must be an array [..., K] with K of at least 1, got shape {logs.shape}"
        )
    if not (logs.max() <= LARGEST_LOG and logs.min() >= -LARGEST_LOG):  # nan compares false
        bad = logs[~(np.abs(logs) <= LARGEST_LOG)][0]
        raise ValueError(
            f"log_weights must be finite, between -{LARGEST_LOG} and {LARGEST_LOG}, got {bad}"
        )
    num_clients = logs.shape[-1]
    size = check_int("cohort_size", cohort_size, 1, num_clients)
    most = size / num_clients
    sigma = min(check_range("floor", floor, 0.0, most * (1 + TIE)), most)
    rho = slots(size, num_clients, sigma)
    if not rho:  # nothing to give by weight
        none = np.zeros(logs.shape, dtype=np.bool_)
        return Allocation(np.full(logs.shape, most), none, np.full(logs.shape[:-1], np.inf))
    log_cap = _log_cap(logs, rho)
    inclusion = np.minimum(logs - log_cap[..., None], 0.0)
    np.exp(inclusion, out=inclusion)
    if sigma:
        inclusion *= 1 - sigma
        inclusion += sigma
    return Allocation(inclusion, above_cap(logs, log_cap), log_cap)


def allocate_among(
    available: Bools, log_weights: Floats, cohort_size: int, floors: Floats
) -> Allocation:
    """Allocate to the available clients alone, row by row; the others get 0 and are never capped."""
    inclusion = np.zeros(log_weights.shape)
    capped = np.zeros(log_weights.shape, dtype=np.bool_)
    log_cap = np.empty(log_weights.shape[:-1])
    for row in np.ndindex(log_weights.shape[:-1]):
        ids = np.flatnonzero(available[row])
        part = allocate(log_weights[row][ids], cohort_size, float(floors[row]))
        inclusion[row][ids], capped[row][ids], log_cap[row] = (
            part.inclusion,
            part.capped,
            part.log_cap,
        )
    return Allocation(inclusion, capped, log_cap)


def above_cap(log_weights: Floats, log_cap: Floats) -> Bools:
    """Return who is capped: strictly above, so that no rounding caps a client that lies on it."""
    above: Bools = log_weights > (log_cap + TIE)[..., None]
    return above


def slots(size: int, num_clients: int, sigma: float) -> float:
    """Return rho, a whole number where only rounding keeps it from being one: a rank must not hang on the last bit.

    0 where nothing is left to be given by weight: everyone is asked, or the floor takes all.
    """
    if size == num_clients:
        return 0.0
    rho = (size - num_clients * sigma) / (1 - sigma)
    near = round(rho)
    return float(near) if abs(rho - near) <= TIE * num_clients else rho


def _log_cap(logs: Floats, rho: float) -> Floats:
    """Return log theta in closed form: one sort, any batch, any spread."""
    rank = ceil(rho)
    first = logs.shape[-1] - rank
    upward = np.sort(logs, axis=-1)
    centre = upward[..., first].copy()
    upward -= centre[..., None]
    np.minimum(upward[..., first:], FAR_ABOVE, out=upward[..., first:])
    np.exp(upward, out=upward)
    sums = np.cumsum(upward[..., first:], axis=-1)
    sums += upward[..., :first].sum(axis=-1, keepdims=True)  # upwards: s_(r-1) .. s_0
    sums /= rho - np.arange(rank - 1, -1, -1)
    log_cap: Floats = np.log(sums.min(axis=-1)) + centre
    return log_cap
