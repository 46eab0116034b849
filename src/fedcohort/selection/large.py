"""A million clients: allocation and systematic sampling in one pass over the weights, without forming p.

The clients stand in blocks of 16 neighbours whose borders are drawn anew each time; the blocks are shuffled, and so are the
clients inside. Only sums of blocks are kept from the pass. Capped clients are found in the blocks heavy enough to hold one,
the marks of the systematic sample among the running sums of the blocks, and single clients matter only in the blocks that were
hit. The probabilities are those of `allocate`, and the sample is exact as that of `systematic` is: any order will do that is
chosen before the marks.
"""

import numpy as np

from fedcohort.arrays import Floats, Ints, pick
from fedcohort.rng import Uniforms, stream
from fedcohort.selection.allocation import allocate, slots
from fedcohort.selection.sampling import running_sum, shuffled, systematic

LARGE = 50_000  # clients from which this is faster
BLOCK = 16
PASSES = 50  # of Newton's method, each over the block sums alone
ORDERS = stream(0, "orders").permuted(
    np.tile(np.arange(BLOCK, dtype=np.int8), (4096, 1)), axis=1
)  # inside a block
SURE = 1 - 1e-10  # of the cap: at a running sum of millions, rounding must not draw a client twice
SMALLEST_CAP = 1e-100  # relative to the largest weight: below, small weights lose digits


def draw(
    log_weights: Floats, weights: Floats, size: int, sigma: float, rng: Uniforms
) -> tuple[Ints, Floats, Floats]:
    """Return clients [..., k], ascending, their inclusion probabilities and log theta [...]; many runs row by row.

    weights: e^log_weights; where they leave the range of float64, the logarithms are read instead.
    """
    blocks = -(-log_weights.shape[-1] // BLOCK) + 1
    draws = rng.random((*log_weights.shape[:-1], 2 + blocks))
    rows = list(np.ndindex(log_weights.shape[:-1]))
    drawn = [_draw_row(log_weights[row], weights[row], size, sigma, draws[row]) for row in rows]
    if not log_weights.ndim > 1:
        return drawn[0]
    clients, inclusion, log_cap = (np.stack(column) for column in zip(*drawn, strict=True))
    return clients, inclusion, log_cap


def _draw_row(
    log_weights: Floats, weights: Floats, size: int, sigma: float, draws: Floats
) -> tuple[Ints, Floats, Floats]:
    """Return the cohort of one run; sort where that is safer (a spread beyond float64, ties on the cap, R = 0)."""
    num_clients, blocks = log_weights.size, draws.size - 2
    first = -int(
        draws[0] * BLOCK
    )  # where the first block starts: up to 15 places before the first client
    rho = slots(size, num_clients, sigma)
    centre, solved = 0.0, _solve(weights, first, blocks, rho)
    if solved is None and rho:
        centre = float(log_weights.max())
        weights = np.exp(log_weights - centre)
        solved = _solve(weights, first, blocks, rho)
    if solved is None:
        allocation = allocate(log_weights, size, sigma)
        chance = np.random.default_rng(
            int(draws[1] * 2**53)
        )  # one more number of this run's own stream, and no other's
        clients = systematic(allocation.inclusion, chance, size)
        return clients, allocation.inclusion[clients], allocation.log_cap

    sums, capped, cap = solved
    order, left = shuffled(draws[2:]), size - capped.size
    steps = running_sum(
        _masses(sums, first, num_clients, capped, sigma, cap)[order], np.asarray(left)
    )
    marks = np.arange(1, left + 1) - draws[1]
    hit = np.searchsorted(steps, marks)
    by_place = np.argsort(order[hit])  # so that memory is read in order
    hit, marks = hit[by_place], marks[by_place]
    below = np.where(hit > 0, steps[hit - 1], 0.0)
    block = order[hit]
    inner = ORDERS[
        (draws[2 + block] * 2**40).astype(np.int64) % len(ORDERS)
    ]  # or equal blocks would be hit in equal places
    inclusion = _uncapped_inclusion(weights, first, block, inner, sigma, cap)
    inside = inclusion.copy()
    for row in range(1, BLOCK):
        inside[row] += inside[row - 1]
    target = np.minimum((marks - below) / (steps[hit] - below), 1.0) * inside[-1]
    place = (inside < target).sum(axis=0)

    each = np.arange(left)
    clients = np.concatenate([first + BLOCK * block + inner[each, place], capped])
    chances = np.concatenate([inclusion[place, each], np.ones(capped.size)])
    ascending = np.argsort(clients)
    return clients[ascending], chances[ascending], np.asarray(np.log(cap) + centre)


def _solve(
    weights: Floats, first: int, blocks: int, rho: float
) -> tuple[Floats, Ints, float] | None:
    """Return the block sums without the capped, who is capped, and theta; None where there is no theta, or not a safe one."""
    if not rho:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _block_sums(weights, first, blocks)
        capped, cap = _cap(weights, first, sums, rho)
    return (sums, capped, cap) if SMALLEST_CAP <= cap < 1 / SMALLEST_CAP else None


def _block_sums(weights: Floats, first: int, blocks: int) -> Floats:
    """Return the sum of the weights in every block."""
    sums = np.zeros(blocks)
    start = first + BLOCK
    full = (weights.size - start) // BLOCK
    np.matmul(
        weights[start : start + full * BLOCK].reshape(full, BLOCK),
        np.ones(BLOCK),
        out=sums[1 : 1 + full],
    )
    sums[0] = weights[:start].sum()
    sums[full + 1] = weights[start + full * BLOCK :].sum()
    return sums


def _members(weights: Floats, first: int, blocks: Ints, inner: Ints | None = None) -> Floats:
    """Return the weights in these blocks [16, n], in the inner order; 0 before the first client and after the last."""
    start = first + BLOCK
    full = (weights.size - start) // BLOCK
    rows = weights[start : start + full * BLOCK].reshape(full, BLOCK)[
        np.clip(blocks - 1, 0, full - 1)
    ]
    head, tail = np.zeros(BLOCK), np.zeros(BLOCK)
    head[BLOCK - start :] = weights[:start]
    tail[: weights.size - start - full * BLOCK] = weights[start + full * BLOCK :]
    for edge, block in ((head, 0), (tail, full + 1)):
        rows[blocks == block] = edge
    return np.ascontiguousarray((rows if inner is None else pick(rows, inner)).T)


def _masses(
    sums: Floats, first: int, num_clients: int, capped: Ints, sigma: float, cap: float
) -> Floats:
    """Return each block's sum of probabilities, the capped left out: sigma per client and the rest by weight."""
    masses = (1 - sigma) / cap * sums
    if sigma:
        starts = first + BLOCK * np.arange(sums.size)
        counts = np.minimum(starts + BLOCK, num_clients).clip(0) - starts.clip(0, num_clients)
        np.subtract.at(counts, (capped - first) // BLOCK, 1)
        masses += sigma * counts
    return masses


def _uncapped_inclusion(
    weights: Floats, first: int, blocks: Ints, inner: Ints, sigma: float, cap: float
) -> Floats:
    """Return the probabilities in these blocks [16, n], 0 for the capped and in places where there is no client."""
    inclusion = _members(weights, first, blocks, inner)
    above = inclusion > cap * SURE
    inclusion *= (1 - sigma) / cap
    if sigma:
        inclusion += sigma
    inclusion[above] = 0.0
    edges = np.flatnonzero((blocks == 0) | (first + BLOCK * (blocks + 1) > weights.size))
    ids = first + BLOCK * blocks[edges] + inner[edges].T
    inclusion[:, edges] *= (ids >= 0) & (ids < weights.size)
    return inclusion


def _cap(weights: Floats, first: int, sums: Floats, rho: float) -> tuple[Ints, float]:
    """Return who is capped and theta by Newton's method, and take their weight out of the sums; nan if it fails."""
    capped = np.empty(0, dtype=np.int64)
    for _ in range(PASSES):
        if capped.size >= rho:  # only by rounding, where many clients tie on the cap
            break
        cap = float(sums.sum()) / (rho - capped.size)
        heavy = np.flatnonzero(sums > cap * SURE)
        members = _members(weights, first, heavy)
        above = members > cap * SURE  # as caps fall, who was above stays above
        place, block = np.nonzero(above)
        more = np.union1d(capped, first + BLOCK * heavy[block] + place)
        if more.size == capped.size:
            return capped, cap
        sums[heavy] = np.where(above, 0.0, members).sum(axis=0)
        capped = more
    return capped, np.nan
