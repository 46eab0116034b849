"""A million clients: allocation and systematic sampling in one pass, without forming p.

Clients stand in blocks of 16 neighbours. The borders of the blocks are drawn anew each time,
the blocks are shuffled, and so are the clients inside. The pass keeps only sums of blocks:

1. Capped clients are found in the blocks that are heavy enough to hold one.
2. The marks of the systematic sample are found among the running sums of the blocks.
3. Single clients matter only in the blocks that were hit.

The probabilities are those of `allocate`, and the sample is as exact as that of `systematic`,
because any order will do that is chosen before the marks.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.arrays import Floats, Ints, pick
from fedcohort.rng import Uniforms, stream
from fedcohort.selection.allocation import allocate, slots
from fedcohort.selection.sampling import running_sum, shuffled, systematic

LARGE = 50_000  # clients from which this is used
BLOCK = 16
PASSES = 50  # of Newton's method, each over the block sums alone
SURE = 1 - 1e-10  # of the cap: at a running sum of millions, rounding must not draw a client twice
SMALLEST_CAP = 1e-100  # relative to the largest weight: below, small weights lose digits
# Orders of the 16 clients inside a block.
ORDERS = stream(0, "orders").permuted(np.tile(np.arange(BLOCK, dtype=np.int8), (4096, 1)), axis=1)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The weights of one run in blocks. The first and the last may be partly empty."""

    weights: Floats  # [K]
    offset: int  # id of the first place of the first block: 0 down to -15
    count: int

    @property
    def first_full(self) -> int:
        """The id at which the full blocks start."""
        return self.offset + BLOCK

    @property
    def full(self) -> Floats:
        """The weights in the full blocks, [n, 16]."""
        start = self.first_full
        rows = (self.weights.size - start) // BLOCK
        return self.weights[start : start + rows * BLOCK].reshape(rows, BLOCK)

    @property
    def head(self) -> Floats:
        """The weights in the first block, before the full ones."""
        return self.weights[: self.first_full]

    @property
    def tail(self) -> Floats:
        """The weights after the full blocks."""
        return self.weights[self.first_full + self.full.size :]

    def sums(self) -> Floats:
        """Return the sum of the weights in every block, [count]."""
        full = self.full
        sums = np.zeros(self.count)
        np.matmul(full, np.ones(BLOCK), out=sums[1 : 1 + len(full)])
        sums[0] = self.head.sum()
        sums[len(full) + 1] = self.tail.sum()
        return sums

    def members(self, blocks: Ints, inner: Ints | None = None) -> Floats:
        """Return the weights in these blocks [16, n], in the inner order [n, 16] if given.

        Places before the first client and after the last hold 0.
        """
        full = self.full
        rows = full[np.clip(blocks - 1, 0, len(full) - 1)]

        first = np.zeros(BLOCK)
        first[BLOCK - self.head.size :] = self.head
        rows[blocks == 0] = first
        last = np.zeros(BLOCK)
        last[: self.tail.size] = self.tail
        rows[blocks == len(full) + 1] = last

        if inner is not None:
            rows = pick(rows, inner)
        return np.ascontiguousarray(rows.T)

    def sizes(self) -> Ints:
        """Return the number of clients in every block, [count]."""
        starts = self.offset + BLOCK * np.arange(self.count)
        ends = np.minimum(starts + BLOCK, self.weights.size).clip(0)
        sizes: Ints = ends - starts.clip(0, self.weights.size)
        return sizes


@dataclass(frozen=True, eq=False)
class _Solution:
    """The cap of one run."""

    sums: Floats  # weight in every block, without the capped clients
    capped: Ints  # ids of the capped clients
    cap: float  # theta


def draw(
    log_weights: Floats, weights: Floats, size: int, sigma: float, rng: Uniforms
) -> tuple[Ints, Floats, Floats]:
    """Draw a cohort; many runs are drawn row by row.

    Args:
        log_weights: Logarithms of the weights, shape [..., K].
        weights: e^log_weights; where they leave the range of float64, the logarithms are used.
        size: Number of clients to draw, k.
        sigma: Smallest inclusion probability.
        rng: Source of uniform numbers.

    Returns:
        Client ids [..., k] in ascending order, their inclusion probabilities [..., k] and
        log theta [...].
    """
    batch = log_weights.shape[:-1]
    num_blocks = -(-log_weights.shape[-1] // BLOCK) + 1
    draws = rng.random((*batch, 2 + num_blocks))
    if not batch:
        return _draw_row(log_weights, weights, size, sigma, draws)

    cohorts = []
    for row in np.ndindex(batch):
        cohorts.append(_draw_row(log_weights[row], weights[row], size, sigma, draws[row]))
    clients, inclusion, log_cap = zip(*cohorts, strict=True)
    return np.stack(clients), np.stack(inclusion), np.stack(log_cap)


def _draw_row(
    log_weights: Floats, weights: Floats, size: int, sigma: float, draws: Floats
) -> tuple[Ints, Floats, Floats]:
    """Draw the cohort of one run.

    Where one pass is not safe (a spread beyond float64, ties on the cap, R = 0), sort instead.
    """
    border, start = draws[:2]
    block_draws = draws[2:]
    offset = -int(border * BLOCK)
    rho = slots(size, log_weights.size, sigma)

    # 1. Find the cap; weights beyond the range of float64 are centred first.
    centre = 0.0
    blocks = _Blocks(weights, offset, block_draws.size)
    solution = _solve(blocks, rho)
    if solution is None and rho:
        centre = float(log_weights.max())
        blocks = _Blocks(np.exp(log_weights - centre), offset, block_draws.size)
        solution = _solve(blocks, rho)
    if solution is None:
        return _draw_by_sorting(log_weights, size, sigma, start)

    # 2. Find the blocks under the marks, in a random order of the blocks.
    capped = solution.capped
    left = size - capped.size
    order = shuffled(block_draws)
    steps = running_sum(_masses(blocks, solution, sigma)[order], np.asarray(left))
    marks = np.arange(1, left + 1) - start
    hit = np.searchsorted(steps, marks)
    by_position = np.argsort(order[hit])  # so that memory is read in order
    hit = hit[by_position]
    marks = marks[by_position]
    block = order[hit]

    # 3. Find the client under the mark inside each block, in a random order of its clients:
    #    in one order, equal blocks would be hit at equal positions.
    inner = ORDERS[(block_draws[block] * 2**40).astype(np.int64) % len(ORDERS)]
    inclusion = _uncapped_inclusion(blocks, block, inner, sigma, solution.cap)
    inside = inclusion.copy()
    for row in range(1, BLOCK):
        inside[row] += inside[row - 1]
    below = np.where(hit > 0, steps[hit - 1], 0.0)
    share = np.minimum((marks - below) / (steps[hit] - below), 1.0)
    position = (inside < share * inside[-1]).sum(axis=0)

    # 4. Add the capped clients, who are asked for certain.
    each = np.arange(left)
    drawn = offset + BLOCK * block + inner[each, position]
    clients = np.concatenate([drawn, capped])
    chances = np.concatenate([inclusion[position, each], np.ones(capped.size)])
    ascending = np.argsort(clients)
    log_cap = np.asarray(np.log(solution.cap) + centre)
    return clients[ascending], chances[ascending], log_cap


def _draw_by_sorting(
    log_weights: Floats, size: int, sigma: float, number: float
) -> tuple[Ints, Floats, Floats]:
    """Draw as a small federation does, with one number of this run's own stream as the seed."""
    allocation = allocate(log_weights, size, sigma)
    rng = np.random.default_rng(int(number * 2**53))
    clients = systematic(allocation.inclusion, rng, size)
    return clients, allocation.inclusion[clients], allocation.log_cap


def _solve(blocks: _Blocks, rho: float) -> _Solution | None:
    """Return the cap, or None where no cap exists or rounding makes it unsafe."""
    if not rho:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        solution = _find_cap(blocks, rho)
    if not SMALLEST_CAP <= solution.cap < 1 / SMALLEST_CAP:
        return None
    return solution


def _find_cap(blocks: _Blocks, rho: float) -> _Solution:
    """Find who is capped and theta by Newton's method. If that fails, theta is nan."""
    sums = blocks.sums()
    capped = np.empty(0, dtype=np.int64)
    for _ in range(PASSES):
        if capped.size >= rho:  # only by rounding, where many clients tie on the cap
            break
        cap = float(sums.sum()) / (rho - capped.size)

        heavy = np.flatnonzero(sums > cap * SURE)
        members = blocks.members(heavy)
        is_above = members > cap * SURE  # as caps fall, those above stay above
        position, column = np.nonzero(is_above)
        now_capped = np.union1d(capped, blocks.offset + BLOCK * heavy[column] + position)
        if now_capped.size == capped.size:
            return _Solution(sums, capped, cap)

        sums[heavy] = np.where(is_above, 0.0, members).sum(axis=0)
        capped = now_capped
    return _Solution(sums, capped, np.nan)


def _masses(blocks: _Blocks, solution: _Solution, sigma: float) -> Floats:
    """Return the sum of probabilities of the clients in each block that are not capped."""
    masses = (1 - sigma) / solution.cap * solution.sums
    if sigma:
        sizes = blocks.sizes()
        np.subtract.at(sizes, (solution.capped - blocks.offset) // BLOCK, 1)
        masses += sigma * sizes
    return masses


def _uncapped_inclusion(
    blocks: _Blocks, chosen: Ints, inner: Ints, sigma: float, cap: float
) -> Floats:
    """Return the probabilities in the chosen blocks, [16, n].

    Capped clients and places without a client get 0.
    """
    num_clients = blocks.weights.size
    inclusion = blocks.members(chosen, inner)
    is_capped = inclusion > cap * SURE
    inclusion *= (1 - sigma) / cap
    if sigma:
        inclusion += sigma
    inclusion[is_capped] = 0.0

    is_edge = (chosen == 0) | (blocks.offset + BLOCK * (chosen + 1) > num_clients)
    edges = np.flatnonzero(is_edge)
    ids = blocks.offset + BLOCK * chosen[edges] + inner[edges].T
    inclusion[:, edges] *= (ids >= 0) & (ids < num_clients)
    return inclusion
