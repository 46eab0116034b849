"""A million clients: allocation and systematic sampling in one pass over the log-weights, without forming p.

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
CHUNK = 1024 * BLOCK  # clients per step of the pass, so that they stay in the cache
PASSES = 50  # of Newton's method, each over the block sums alone
ORDERS = stream(0, "orders").permuted(np.tile(np.arange(BLOCK, dtype=np.int8), (4096, 1)), axis=1)  # inside a block
SURE = 1 - 1e-10  # of the cap: at a running sum of millions, rounding must not draw a client twice
SMALLEST_CAP = 1e-100  # relative to the largest weight: below, small weights lose digits


def draw(log_weights: Floats, size: int, sigma: float, rng: Uniforms) -> tuple[Ints, Floats, Floats]:
    """Return clients [..., k], ascending, their inclusion probabilities and log theta [...]; many runs row by row."""
    blocks = -(-log_weights.shape[-1] // BLOCK) + 1
    draws = rng.random((*log_weights.shape[:-1], 2 + blocks))
    rows = list(np.ndindex(log_weights.shape[:-1]))
    drawn = [_draw_row(log_weights[row], size, sigma, draws[row]) for row in rows]
    if not log_weights.ndim > 1:
        return drawn[0]
    clients, inclusion, log_cap = (np.stack(column) for column in zip(*drawn, strict=True))
    return clients, inclusion, log_cap


def _draw_row(log_weights: Floats, size: int, sigma: float, draws: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the cohort of one run; sort where that is safer (a spread beyond float64, ties on the cap, R = 0)."""
    num_clients, blocks = log_weights.size, draws.size - 2
    spare = size - num_clients * sigma
    first = -int(draws[0] * BLOCK)  # where the first block starts: up to 15 places before the first client
    rho = slots(spare / (1 - sigma), num_clients) if sigma < 1 else 0.0
    uneven = spare > 1e-12 * size and size < num_clients
    for sample in (log_weights[:CHUNK], log_weights) if uneven else ():  # the largest of one chunk will mostly do
        centre = sample.max()
        with np.errstate(over="ignore", invalid="ignore"):
            sums = _block_sums(log_weights, centre, first, blocks)
            capped, cap = _cap(log_weights, centre, first, sums, rho)
        if SMALLEST_CAP <= cap < 1 / SMALLEST_CAP:
            break
    else:
        allocation = allocate(log_weights, size, sigma)
        chance = np.random.default_rng(int(draws[1] * 2**53))  # one more number of this run's own stream, and no other's
        clients = systematic(allocation.inclusion, chance, size)
        return clients, allocation.inclusion[clients], allocation.log_cap

    order, left = shuffled(draws[2:]), size - capped.size
    steps = running_sum(_masses(sums, first, num_clients, capped, sigma, cap)[order], np.asarray(left))
    marks = np.arange(1, left + 1) - draws[1]
    hit = np.searchsorted(steps, marks)
    by_place = np.argsort(order[hit])  # so that memory is read in order
    hit, marks = hit[by_place], marks[by_place]
    below = np.where(hit > 0, steps[hit - 1], 0.0)
    block = order[hit]
    inner = ORDERS[(draws[2 + block] * 2**40).astype(np.int64) % len(ORDERS)]  # or equal blocks would be hit in equal places
    inclusion = _uncapped_inclusion(log_weights, centre, first, block, inner, sigma, cap)
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


def _block_sums(logs: Floats, centre: float, first: int, blocks: int) -> Floats:
    """Return the sum of exp(log w - centre) in every block."""
    sums, ones, room = np.zeros(blocks), np.ones(BLOCK), np.empty(CHUNK)
    start = first + BLOCK
    full = (logs.size - start) // BLOCK
    for at in range(0, full, CHUNK // BLOCK):
        count = min(CHUNK // BLOCK, full - at)
        part = room[: count * BLOCK]
        np.subtract(logs[start + at * BLOCK : start + (at + count) * BLOCK], centre, out=part)
        np.exp(part, out=part)
        np.matmul(part.reshape(count, BLOCK), ones, out=sums[1 + at : 1 + at + count])
    sums[0] = np.exp(logs[:start] - centre).sum()
    sums[full + 1] = np.exp(logs[start + full * BLOCK :] - centre).sum()
    return sums


def _weights(logs: Floats, centre: float, first: int, blocks: Ints, inner: Ints | None = None) -> Floats:
    """Return exp(log w - centre) in these blocks [16, n], in the inner order; 0 before the first client and after the last."""
    start = first + BLOCK
    full = (logs.size - start) // BLOCK
    rows = logs[start : start + full * BLOCK].reshape(full, BLOCK)[np.clip(blocks - 1, 0, full - 1)]
    head, tail = np.full(BLOCK, -np.inf), np.full(BLOCK, -np.inf)
    head[BLOCK - start :] = logs[:start]
    tail[: logs.size - start - full * BLOCK] = logs[start + full * BLOCK :]
    for edge, block in ((head, 0), (tail, full + 1)):
        rows[blocks == block] = edge
    weights = np.subtract((rows if inner is None else pick(rows, inner)).T, centre, out=np.empty(rows.T.shape))
    return np.exp(weights, out=weights)


def _masses(sums: Floats, first: int, num_clients: int, capped: Ints, sigma: float, cap: float) -> Floats:
    """Return each block's sum of probabilities, the capped left out: sigma per client and the rest by weight."""
    masses = (1 - sigma) / cap * sums
    if sigma:
        starts = first + BLOCK * np.arange(sums.size)
        counts = np.minimum(starts + BLOCK, num_clients).clip(0) - starts.clip(0, num_clients)
        np.subtract.at(counts, (capped - first) // BLOCK, 1)
        masses += sigma * counts
    return masses


def _uncapped_inclusion(logs: Floats, centre: float, first: int, blocks: Ints, inner: Ints, sigma: float, cap: float) -> Floats:
    """Return the probabilities in these blocks [16, n], 0 for the capped and in places where there is no client."""
    weights = _weights(logs, centre, first, blocks, inner)
    above = weights > cap * SURE
    inclusion = np.multiply(weights, (1 - sigma) / cap, out=weights)
    if sigma:
        inclusion += sigma
    inclusion[above] = 0.0
    edges = np.flatnonzero((blocks == 0) | (first + BLOCK * (blocks + 1) > logs.size))
    ids = first + BLOCK * blocks[edges] + inner[edges].T
    inclusion[:, edges] *= (ids >= 0) & (ids < logs.size)
    return inclusion


def _cap(logs: Floats, centre: float, first: int, sums: Floats, rho: float) -> tuple[Ints, float]:
    """Return who is capped and theta / e^centre by Newton's method, and take their weight out of the sums; nan if it fails."""
    capped = np.empty(0, dtype=np.int64)
    for _ in range(PASSES):
        if capped.size >= rho:  # only by rounding, where many clients tie on the cap
            break
        cap = float(sums.sum()) / (rho - capped.size)
        heavy = np.flatnonzero(sums > cap * SURE)
        weights = _weights(logs, centre, first, heavy)
        above = weights > cap * SURE  # as caps fall, who was above stays above
        place, block = np.nonzero(above)
        more = np.union1d(capped, first + BLOCK * heavy[block] + place)
        if more.size == capped.size:
            return capped, cap
        sums[heavy] = np.where(above, 0.0, weights).sum(axis=0)
        capped = more
    return capped, np.nan
