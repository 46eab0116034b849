"""From inclusion probabilities to a cohort.

A sampler takes p, shape [..., K], and returns ascending client ids, shape [..., k], where
k = sum p. A caller who knows that p is right passes k as `size` and saves the check.

`systematic` and `pivotal` are exact: client i is drawn with probability p_i, and always k
clients are drawn. `successive` is the paper's `torch.multinomial(p, k, replacement=False)`.
It misses p by up to 0.25 where p is uneven, and exists to reproduce the paper.

Clients with p = 1 are taken out first, so that rounding of a running sum cannot lose one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints, row_starts
from fedcohort.rng import Uniforms
from fedcohort.selection.pivotal_lines import PivotalLine, PivotalLines

RADIX_SORTED = range(500, 2**16 + 1)  # numbers in a row that are first sorted by 16 bits

Sampler = Callable[[Floats, Uniforms, int | None], Ints]


def systematic(p: Floats, rng: Uniforms, size: int | None = None) -> Ints:
    """Draw exactly: lay the clients end to end in random order, under equally spaced marks.

    Args:
        p: Inclusion probabilities, shape [..., K].
        rng: Source of uniform numbers.
        size: The sum of p, if the caller knows it.

    Returns:
        Client ids in ascending order, shape [..., k].

    Raises:
        ValueError: If p has no whole sum or a value out of bounds; only without `size`.

    Examples:
        >>> systematic(np.array([0.5, 1.0, 0.5]), np.random.default_rng(0)).size
        2
    """
    split = _split(p, size)
    draws = rng.random((*p.shape[:-1], p.shape[-1] + 1))
    start = draws[..., 0]
    order = shuffled(draws[..., 1:]) + row_starts(p.shape)

    is_drawn = _under_marks(split.rest.take(order), split.count, start)
    selected = split.certain
    selected.reshape(-1)[order.take(np.flatnonzero(is_drawn))] = True
    return _ids(selected, split.size)


def pivotal(p: Floats, rng: Uniforms, size: int | None = None) -> Ints:
    """Draw exactly without a shuffle: neighbours duel for their probability, in order.

    This is the sequential pivotal method.

    Args:
        p: Inclusion probabilities, shape [..., K].
        rng: Source of uniform numbers.
        size: The sum of p, if the caller knows it.

    Returns:
        Client ids in ascending order, shape [..., k].

    Raises:
        ValueError: If p has no whole sum or a value out of bounds; only without `size`.

    Examples:
        >>> pivotal(np.array([0.5, 1.0, 0.5]), np.random.default_rng(0)).size
        2
    """
    return lay_lines(p, size).draw(rng)


def lay_lines(p: Floats, size: int | None = None) -> PivotalLines:
    """Return the clients laid end to end, for any number of draws by `pivotal`.

    Args:
        p: Inclusion probabilities, shape [..., K].
        size: The sum of p, if the caller knows it.

    Raises:
        ValueError: If p has no whole sum or a value out of bounds; only without `size`.
    """
    batch = p.shape[:-1]
    split = _split(p, size)
    counts = np.broadcast_to(split.count, batch)
    lines = []
    for row in np.ndindex(batch):
        rest = split.rest[row]
        ids = np.flatnonzero(rest)
        sums = running_sum(rest[ids], counts[row]) if ids.size else rest[:0]
        certain = np.flatnonzero(split.certain[row])
        lines.append(PivotalLine(certain, ids, sums, int(counts[row])))
    return PivotalLines(lines, batch, split.size)


def successive(p: Floats, rng: Uniforms, size: int | None = None) -> Ints:
    """Draw one client after the other in proportion to p, without replacement: NOT exact.

    This has the law of `torch.multinomial`.

    Args:
        p: Inclusion probabilities, shape [..., K].
        rng: Source of uniform numbers.
        size: The sum of p, if the caller knows it.

    Returns:
        Client ids in ascending order, shape [..., k].

    Raises:
        ValueError: If p has no whole sum or a value out of bounds; only without `size`.

    Examples:
        >>> successive(np.array([0.5, 1.0, 0.5]), np.random.default_rng(0)).size
        2
    """
    if size is None:
        size = _check_probabilities(p)
    # The first k arrivals of independent Poisson clocks with rates p have this law.
    waiting = -np.log1p(-rng.random(p.shape))
    with np.errstate(over="ignore"):  # a client with p next to zero waits for ever, rightly
        times = np.divide(waiting, p, out=np.full(p.shape, np.inf), where=p > 0)
    if size == 0:
        return np.empty((*p.shape[:-1], 0), dtype=np.int64)
    first = np.argpartition(times, size - 1, axis=-1)[..., :size]
    return np.sort(first, axis=-1)


SAMPLERS: dict[str, Sampler] = {
    "systematic": systematic,
    "pivotal": pivotal,
    "successive": successive,
}
EXACT_SAMPLERS = ("systematic", "pivotal")


@dataclass(frozen=True, eq=False)
class _Split:
    """Clients that are drawn for certain, and the rest."""

    size: int  # k
    certain: Bools  # [..., K]
    rest: Floats  # [..., K] p, and 0 for those who are certain
    count: Ints  # [...] how many are left to draw


def _split(p: Floats, size: int | None = None) -> _Split:
    if size is None:
        size = _check_probabilities(p)
        slack = 2 * _slack(p)
    else:
        slack = certain_slack(size)

    certain_from = 1 - slack  # beyond the reach of scaling and rounding of the running sum
    if p.max() < certain_from:
        nobody = np.zeros(p.shape, dtype=np.bool_)
        return _Split(size, certain=nobody, rest=p, count=np.asarray(size))
    certain: Bools = p >= certain_from
    rest = np.where(certain, 0.0, p)
    return _Split(size, certain, rest, count=np.asarray(size - certain.sum(axis=-1)))


def certain_slack(size: int) -> float:
    """Return how far below 1 a probability counts as 1 in a draw of this size.

    A client so near to 1 could otherwise be drawn twice by rounding of a running sum.
    """
    return max(1e-12, 1e-14 * size)


def _check_probabilities(p: Floats) -> int:
    """Return k = sum p if p is a set of inclusion probabilities."""
    sums = np.asarray(p.sum(axis=-1))
    smallest = float(sums.min())
    largest = float(sums.max())
    size = round(largest) if isfinite(largest) else -1
    if not max(largest - size, size - smallest) <= _slack(p):
        raise ValueError(
            f"p must sum to one whole number in every row, got {smallest} to {largest}"
        )
    if p.min() < 0 or p.max() > 1 + 1e-12:
        raise ValueError(f"p must be between 0 and 1, got {p.min()} to {p.max()}")
    return size


def _slack(p: Floats) -> float:
    """Return how far a sum of p may be from a whole number."""
    return float(1e-9 + 1e-12 * p.shape[-1])


def running_sum(p: Floats, count: Ints) -> Floats:
    """Return the running sums of p, scaled so that the last one reaches its whole number.

    Args:
        p: Probabilities, shape [..., K].
        count: The whole number that p sums to but for rounding, shape [...].

    Returns:
        Running sums [..., K]; the last is never below `count`, and at most an ulp or two above.
    """
    sums = np.cumsum(p, axis=-1)
    scale = count / np.maximum(sums[..., -1], np.finfo(np.float64).tiny)
    sums *= np.nextafter(scale, np.inf)[..., None]
    return sums


def shuffled(draws: Floats) -> Ints:
    """Return a random order of 0 .. n-1 per row.

    Uniform numbers sort as their bit patterns do. The ids replace the last bits, so that one
    sort of integers gives the order. Rows of a few thousand numbers are first sorted by 16 bits,
    in linear time, and the stable sort is fast on what is nearly sorted.

    Args:
        draws: Uniform numbers, shape [..., n].

    Returns:
        The order, shape [..., n].
    """
    n = draws.shape[-1]
    id_bits = (1 << (n - 1).bit_length()) - 1
    keys: Ints = draws.view(np.int64) & ~id_bits
    keys |= np.arange(n)
    if draws.ndim == 1 and n in RADIX_SORTED:
        nearly = np.argsort((draws * 2**16).astype(np.uint16), kind="stable")
        keys = keys.take(nearly)
        keys.sort(kind="stable")
    else:
        keys.sort(axis=-1)
    keys &= id_bits
    return keys


def _under_marks(p: Floats, count: Ints, start: Floats) -> Bools:
    """Return who lies under a mark j - start: floor(C_i + start) > floor(C_(i-1) + start)."""
    sums = running_sum(p, count)
    sums += start[..., None]
    marks_passed = sums.astype(np.int32)
    np.minimum(marks_passed, count.astype(np.int32)[..., None], out=marks_passed)

    is_drawn = np.empty(p.shape, dtype=np.bool_)
    np.greater(marks_passed[..., :1], 0, out=is_drawn[..., :1])
    np.greater(marks_passed[..., 1:], marks_passed[..., :-1], out=is_drawn[..., 1:])
    return is_drawn


def _ids(selected: Bools, size: int) -> Ints:
    """Return the ids of a mask [..., K] with `size` clients in every row."""
    positions = np.flatnonzero(selected).reshape(*selected.shape[:-1], size)
    return positions - row_starts(selected.shape)
