"""From inclusion probabilities to a cohort: p [..., K] in, ids [..., k] out, ascending, k = sum p.

A caller that knows p to be right gives k as `size` and spares the check.

`systematic` and `pivotal` are exact: client i is drawn with probability p_i, and always k clients are drawn. `successive`
is the paper's `torch.multinomial(p, k, replacement=False)`, which misses p by up to 0.25 where p is uneven: it is here
to reproduce the paper. Clients with p = 1 are taken out first, so that no rounding of a running sum can lose one.
"""

from collections.abc import Callable
from math import isfinite

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, row_starts
from fedcohort.checks import check_range
from fedcohort.rng import Uniforms

Sampler = Callable[[Floats, Uniforms, int | None], Ints]


def systematic(p: Floats, rng: Uniforms, size: int | None = None) -> Ints:
    """Lay the clients end to end in random order and take those under k equally spaced marks; exact."""
    k, certain, rest, left = _split(p, size)
    draws = rng.random((*p.shape[:-1], p.shape[-1] + 1))
    order = shuffled(draws[..., 1:]) + row_starts(p.shape)
    drawn = _under_marks(rest.take(order), left, draws[..., 0])
    certain.reshape(-1)[order.take(np.flatnonzero(drawn))] = True
    return _ids(certain, k)


def systematic_at(p: Floats, start: float) -> Ints:
    """Take the clients under the marks 1 - start, 2 - start, … in the order given: no chance is left."""
    k, certain, rest, left = _split(p)
    check_range("start", start, 0.0, np.nextafter(1.0, 0.0))
    return _ids(certain | _under_marks(rest, left, np.asarray(start)), k)


def pivotal(p: Floats, rng: Uniforms, size: int | None = None) -> Ints:
    """Let neighbours duel for their probability, in the order given (sequential pivotal method); exact, no shuffle."""
    k, certain, rest, left = _split(p, size)
    draws = rng.random((*p.shape[:-1], 2 * k))
    left = np.broadcast_to(left, p.shape[:-1])
    rows = [
        _merge(_duels(rest[row], int(left[row]), draws[row]), certain[row])
        for row in np.ndindex(p.shape[:-1])
    ]
    return np.stack(rows).reshape(*p.shape[:-1], k)


def successive(p: Floats, rng: Uniforms, size: int | None = None) -> Ints:
    """Draw one client after the other in proportion to p, without replacement: NOT exact, the law of torch.multinomial."""
    k = _checked_size(p) if size is None else size
    waiting = -np.log1p(
        -rng.random(p.shape)
    )  # first k arrivals of independent Poisson clocks have that law
    with np.errstate(over="ignore"):  # a p next to zero waits for ever, as it should
        times = np.divide(waiting, p, out=np.full(p.shape, np.inf), where=p > 0)
    first = (
        np.argpartition(times, k - 1, axis=-1)[..., :k]
        if k
        else np.empty((*p.shape[:-1], 0), dtype=np.int64)
    )
    return np.sort(first, axis=-1)


SAMPLERS: dict[str, Sampler] = {
    "systematic": systematic,
    "pivotal": pivotal,
    "successive": successive,
}


def _checked_size(p: Floats) -> int:
    """Return k = sum p; refuse what is not a set of inclusion probabilities."""
    totals = np.asarray(p.sum(axis=-1))
    least, most = float(totals.min()), float(totals.max())
    k = round(most) if isfinite(most) else -1
    if not max(most - k, k - least) <= _slack(p):
        raise ValueError(f"p must sum to one whole number in every row, got {least} to {most}")
    if p.min() < 0 or p.max() > 1 + 1e-12:
        raise ValueError(f"p must be between 0 and 1, got {p.min()} to {p.max()}")
    return k


def _slack(p: Floats) -> float:
    """Return how far a sum of p may be from a whole number."""
    return float(1e-9 + 1e-12 * p.shape[-1])


def _split(p: Floats, size: int | None = None) -> tuple[int, Bools, Floats, Ints]:
    """Return k, who is drawn for certain, p without them, and how many are left to draw."""
    k = _checked_size(p) if size is None else size
    slack = 2 * _slack(p) if size is None else max(1e-12, 1e-14 * k)
    sure = 1 - slack  # beyond what scaling and rounding of the running sum can do
    if p.max() < sure:
        return k, np.zeros(p.shape, dtype=np.bool_), p, np.asarray(k)
    certain: Bools = p >= sure
    return k, certain, np.where(certain, 0.0, p), np.asarray(k - certain.sum(axis=-1))


def running_sum(p: Floats, count: Ints) -> Floats:
    """Return the running sums of p, scaled so that the last reaches its whole number, and is not an ulp or two beyond."""
    sums = np.cumsum(p, axis=-1)
    scale = count / np.maximum(sums[..., -1], np.finfo(np.float64).tiny)
    sums *= np.nextafter(scale, np.inf)[..., None]
    return sums


def shuffled(draws: Floats) -> Ints:
    """Return a random order of 0 .. n-1 per row: uniforms sort as their bit patterns do, with the ids in the last bits."""
    n = draws.shape[-1]
    mask = (1 << (n - 1).bit_length()) - 1
    keys: Ints = draws.view(np.int64) & ~mask
    keys |= np.arange(n)
    keys.sort(axis=-1)
    keys &= mask
    return keys


def _under_marks(p: Floats, count: Ints, start: Floats) -> Bools:
    """Return who lies under the marks j - start: i with floor(C_i + start) > floor(C_(i-1) + start)."""
    sums = running_sum(p, count)
    sums += start[..., None]
    passed = sums.astype(np.int32)
    np.minimum(passed, count.astype(np.int32)[..., None], out=passed)
    drawn = np.empty(p.shape, dtype=np.bool_)
    np.greater(passed[..., :1], 0, out=drawn[..., :1])
    np.greater(passed[..., 1:], passed[..., :-1], out=drawn[..., 1:])
    return drawn


def _duels(p: Floats, count: int, draws: Floats) -> Ints:
    """Draw one client per unit of running sum; the client astride a border is drawn on one side of it at most.

    A client astride the border before stratum j reaches `head` into it; the one astride its end starts `tail` before it.
    Unless the former is drawn, the stratum's client is found at a location uniform on the rest of the stratum.
    """
    if not count:
        return np.empty(0, dtype=np.int64)
    ids = np.flatnonzero(p)
    sums = running_sum(p if ids.size == p.size else p[ids], np.asarray(count))
    borders = np.arange(1, count)
    astride = np.searchsorted(sums, borders)  # first client that ends on the border or beyond
    crosses = sums[astride] > borders
    first = np.where(astride > 0, sums[astride - 1], 0.0)
    head = np.append(0.0, np.where(crosses, sums[astride] - borders, 0.0))
    tail = np.where(crosses, borders - first, 0.0)

    target = np.arange(count) + head + (1 - draws[:count]) * (1 - head)
    inner = np.append(0, astride + 1)  # whatever the rounding, beyond the client astride
    located = np.clip(np.searchsorted(sums, target), inner, ids.size - 1)
    is_right = np.append((located[:-1] == astride) & crosses, False)
    chance = np.divide(head[1:], 1 - tail, out=np.zeros(count - 1), where=tail < 1)
    wants_left = np.append(False, draws[count : 2 * count - 1] < chance)
    drawn_right = _carry(is_right, wants_left)
    takes_left = wants_left & np.append(False, ~drawn_right[:-1])
    return ids[np.where(takes_left, inner - 1, located)]


def _carry(is_right: Bools, wants_left: Bools) -> Bools:
    """Return s_j = is_right_j and (not wants_left_j or s_(j-1)): copied from the last stratum that decides by itself."""
    decides = ~(is_right & wants_left)
    source = np.maximum.accumulate(np.where(decides, np.arange(decides.size), 0))
    carried: Bools = is_right[source]
    return carried


def _merge(drawn: Ints, certain: Bools) -> Ints:
    return np.sort(np.concatenate([drawn, np.flatnonzero(certain)]))


def _ids(drawn: Bools, k: int) -> Ints:
    """Return the ids of a mask that holds k clients in every row."""
    return np.flatnonzero(drawn).reshape(*drawn.shape[:-1], k) - row_starts(drawn.shape)
