"""A million clients: allocation and systematic sampling in one pass over the log-weights, without forming p.

The clients stand in blocks of 16 neighbours whose borders are drawn anew each time; the blocks are shuffled. Only sums of
blocks are kept from the pass. Capped clients are found in the blocks heavy enough to hold one, the marks of the systematic
sample among the running sums of the blocks, and single clients matter only in the blocks that were hit. The probabilities
are those of `allocate` and the sample is exact as that of `systematic` is: any order will do that is chosen before the marks.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.rng import Uniforms
from fedcohort.selection.allocation import slots
from fedcohort.selection.sampling import running_sum, shuffled

LARGE = 50_000  # clients from which this is faster
BLOCK = 16
CHUNK = 1024 * BLOCK  # clients per step of the pass, so that they stay in the cache
PASSES = 50  # of Newton's method, each over the block sums alone
SURE = 1 - 1e-10  # of the cap: at a running sum of millions, rounding must not draw a client twice
SMALLEST_CAP = 1e-100  # relative to the largest weight: below, small weights lose digits


@dataclass(frozen=True, eq=False)
class Drawn:
    """A cohort, ascending, with its inclusion probabilities and log theta."""

    clients: Ints
    inclusion: Floats
    log_cap: float


def draw(log_weights: Floats, size: int, sigma: float, rng: Uniforms) -> Drawn | None:
    """Return a cohort of one run; None where a sort is needed (a spread beyond float64, ties on the cap, R = 0)."""
    num_clients = log_weights.size
    spare = size - num_clients * sigma
    if spare <= 1e-12 * size or size == num_clients:
        return None
    blocks = -(-num_clients // BLOCK) + 1
    draws = rng.random((2 + blocks,))
    first = -int(draws[0] * BLOCK)  # where the first block starts: up to 15 places before the first client
    rho = slots(spare / (1 - sigma), num_clients)
    for centre in (log_weights[:CHUNK].max(), log_weights.max()):  # the first will do, unless the rest is out of its range
        with np.errstate(over="ignore", invalid="ignore"):
            sums = _block_sums(log_weights, centre, first, blocks)
            capped, cap = _cap(log_weights, centre, first, sums, rho)
        if SMALLEST_CAP <= cap < 1 / SMALLEST_CAP:
            break
    else:
        return None

    order, left = shuffled(draws[2:]), size - capped.size
    steps = running_sum(_masses(sums, first, num_clients, capped, sigma, cap)[order], np.asarray(left))
    marks = np.arange(1, left + 1) - draws[1]
    hit = np.searchsorted(steps, marks)
    below = np.where(hit > 0, steps[hit - 1], 0.0)
    inclusion = _uncapped_inclusion(log_weights, centre, first, order[hit], sigma, cap)
    inside = inclusion.copy()
    for row in range(1, BLOCK):
        inside[row] += inside[row - 1]
    target = np.minimum((marks - below) / (steps[hit] - below), 1.0) * inside[-1]
    place = (inside < target).sum(axis=0)

    clients = np.concatenate([first + BLOCK * order[hit] + place, capped])
    chances = np.concatenate([inclusion[place, np.arange(left)], np.ones(capped.size)])
    ascending = np.argsort(clients)
    return Drawn(clients[ascending], chances[ascending], float(np.log(cap) + centre))


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


def _weights(logs: Floats, centre: float, first: int, blocks: Ints) -> Floats:
    """Return exp(log w - centre) of the clients of these blocks, [16, n]; 0 in places before the first and after the last."""
    start = first + BLOCK
    full = (logs.size - start) // BLOCK
    grid = logs[start : start + full * BLOCK].reshape(full, BLOCK)
    rows = grid[np.clip(blocks - 1, 0, full - 1)].T.copy()
    head, tail = np.full(BLOCK, -np.inf), np.full(BLOCK, -np.inf)
    head[BLOCK - start :] = logs[:start]
    tail[: logs.size - start - full * BLOCK] = logs[start + full * BLOCK :]
    for edge, block in ((head, 0), (tail, full + 1)):
        at = np.flatnonzero(blocks == block)
        rows[:, at] = edge[:, None]
    rows -= centre
    return np.exp(rows, out=rows)


def _masses(sums: Floats, first: int, num_clients: int, capped: Ints, sigma: float, cap: float) -> Floats:
    """Return each block's sum of probabilities, the capped left out: sigma per client and the rest by weight."""
    masses = (1 - sigma) / cap * sums
    if sigma:
        starts = first + BLOCK * np.arange(sums.size)
        counts = np.minimum(starts + BLOCK, num_clients).clip(0) - starts.clip(0, num_clients)
        np.subtract.at(counts, (capped - first) // BLOCK, 1)
        masses += sigma * counts
    return masses


def _uncapped_inclusion(logs: Floats, centre: float, first: int, blocks: Ints, sigma: float, cap: float) -> Floats:
    """Return the probabilities in these blocks [16, n], 0 for the capped and in places where there is no client."""
    weights = _weights(logs, centre, first, blocks)
    inclusion = np.where(weights > cap * SURE, 0.0, sigma + (1 - sigma) / cap * weights)
    edges = np.flatnonzero((blocks == 0) | (first + BLOCK * (blocks + 1) > logs.size))
    ids = first + BLOCK * blocks[edges] + np.arange(BLOCK)[:, None]
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
