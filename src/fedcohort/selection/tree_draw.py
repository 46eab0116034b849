"""Draw a cohort from a tree of sums: the pivotal method, by descent.

The clients lie end to end, each as long as its probability. Each unit of this line gives one
client, and a client astride the border of two units is drawn in one of them at most (see
`sampling.pivotal`). Two descents of the tree find the clients at the borders and inside.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.selection.duels import takes_left
from fedcohort.selection.sampling import shuffled
from fedcohort.selection.tree import SumTree

# Per unit of the line: farther than rounding, and nearer than the slack of those drawn for certain.
NUDGE = 2e-15


@dataclass(frozen=True, eq=False)
class _Line:
    """The clients of a tree end to end, block after block in some order.

    Masses are counted in units of the slope where there is one, which saves a product per node.
    """

    tree: SumTree
    slope: float  # 1, or 0 if all clients have the same mass
    base: float
    unit: float  # mass of a stratum
    order: Ints  # blocks along the line
    ends: Floats  # masses from the start of the first block to the end of each
    start: float  # mass at which the line starts and, once round, ends

    def locate(self, places: Floats) -> tuple[Ints, Floats, Floats]:
        """Find the clients at some places.

        Args:
            places: Places on the line, ascending, [n].

        Returns:
            The clients [n], the mass from the start of each to its place [n], and its mass [n].
        """
        masses = places * self.unit
        masses += self.start
        last = int(np.searchsorted(masses, self.ends[-1], side="right"))
        masses[last:] -= self.ends[-1]
        ascending = np.concatenate([masses[last:], masses[:last]])

        # Few ends are sought among many masses, which is faster than the other way round.
        until = np.searchsorted(ascending, self.ends, side="right")
        until[-1] = masses.size  # whatever the rounding
        until[1:] -= until[:-1].copy()
        ranks = np.repeat(np.arange(self.order.size), until)
        first = masses.size - last
        ranks = np.concatenate([ranks[first:], ranks[:first]])

        masses -= np.append(0.0, self.ends).take(ranks)
        return self.tree.descend(self.order.take(ranks), masses, self.slope, self.base)


def draws_needed(tree: SumTree, size: int, in_order: bool) -> int:
    """Return how many uniform numbers `draw_pivotal` takes for a cohort of this size."""
    if in_order:
        return 2 * size
    return 2 * size + 1 + tree.num_blocks


def draw_pivotal(
    tree: SumTree, slope: float, base: float, count: int, draws: Floats, in_order: bool
) -> Ints:
    """Draw clients with probabilities slope * value + base, which sum to `count`.

    Args:
        tree: The clients that can be drawn.
        slope: Probability per value.
        base: Probability per client. All probabilities must be below 1 by more than rounding.
        count: Number of clients to draw, at least 1.
        draws: Uniform numbers, as many as `draws_needed` says.
        in_order: Whether the clients lie in the order of their ids, as `sampling.pivotal` lays
            them. Otherwise the blocks are shuffled and the line starts at a random client, so
            that every pair of clients can meet in a cohort.

    Returns:
        Client ids [count], ascending but for the block in which the line starts.
    """
    line = _make_line(tree, slope, base, count, draws, in_order)
    if not in_order:
        draws = draws[1 + tree.num_blocks :]

    # 1. Find who is astride a border: it begins `tail` before and ends `head` after it.
    borders = np.arange(1.0, count)
    astride, inside, lengths = line.locate(borders)
    begins = borders - inside / line.unit
    ends = begins + lengths / line.unit
    head = np.append(0.0, np.maximum(ends - borders, 0.0))
    tail = np.maximum(borders - begins, 0.0)

    # 2. Find the client at a uniform place beyond the head of each stratum.
    #    The nudge keeps rounding from leading back to the client astride.
    places = (1 - draws[:count]) * (1 - head)
    places = np.maximum(places, 2 * _nudge(count))
    located, _, _ = line.locate(np.arange(count) + head + places)

    # 3. Decide the duels.
    left = takes_left(located[:-1] == astride, head[1:], tail, draws[count : 2 * count - 1])
    clients = np.where(left, np.append(located[0], astride), located)
    blocks = (clients >> tree.depth).astype(np.int16)  # which are sorted in linear time
    return clients[np.argsort(blocks, kind="stable")]


def _make_line(
    tree: SumTree, slope: float, base: float, count: int, draws: Floats, in_order: bool
) -> _Line:
    """Lay out the clients on a line of length `count`."""
    base = base / slope if slope else 1.0
    slope = 1.0 if slope else 0.0
    masses = tree.block_masses(slope, base)
    order = np.arange(tree.num_blocks)
    if not in_order:
        order = shuffled(np.ascontiguousarray(draws[1 : 1 + tree.num_blocks]))
    ends = np.cumsum(masses[order])
    line = _Line(tree, slope, base, ends[-1] / count, order, ends, start=0.0)
    if in_order:
        return line

    # The line starts just before a random client, so that it cuts none in two.
    place = int(float(draws[0]) * tree.num_blocks * 2**tree.depth)
    rank = min(place >> tree.depth, tree.num_blocks - 1)
    first = (int(order[rank]) << tree.depth) + place % 2**tree.depth
    start = tree.mass_before(first, slope, base) - _nudge(count) * line.unit
    if rank:
        start += float(ends[rank - 1])
    return replace(line, start=start)


def _nudge(count: int) -> float:
    return NUDGE * max(count, 64)
