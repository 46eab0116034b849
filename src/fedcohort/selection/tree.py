"""Sums in a tree: find places among them and change a few, without a pass over all.

Clients stand in blocks of 2^depth neighbours, at most `MOST_BLOCKS` of them. Inside each block
the sums of pairs, of pairs of pairs and so on are kept. A place is found by descending them,
for all places at once, and a change of k values touches k sums in each layer.

Every sum is added anew from its two halves, and no difference is ever added to it. So sums do
not drift: after any number of changes they are the bits that a new tree would hold.

A client counts `slope * value + base`, its mass. Factors that concern all clients need no change
of the tree. The value 0 stands for a place without a client, whose mass is 0 whatever the base.
"""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints

MOST_BLOCKS = 4096
SMALL_LAYER = 2**18  # nodes: their sums, 2 MB, may stay in a near cache
DENSE = 8  # nodes of a layer per client that changes: up to so many are all added anew
CACHE_LINE = 64  # bytes
ROUNDING = 1e-9  # relative: a node that holds a mass may seem lighter than it by this much

Counts = npt.NDArray[np.float32]  # exact up to 2^24 clients in a block


class SumTree:
    """Sums of values in blocks of 2^depth clients.

    Args:
        values: One finite value per client, shape [K]; 0 for nobody.

    Attributes:
        depth: Logarithm of the size of a block, to base 2.
        sums: Layers of sums, from the values themselves up to the sums of the blocks. A large
            layer is empty if the one below is not: four neighbours there share a line of the
            cache, so that adding two of them anew is faster than fetching their sum.
        counts: How many clients each of these sums counts. The first layer is empty, because
            its values tell; the others are empty where the sums are.
        num_missing: Number of clients whose value is 0.

    Examples:
        >>> tree = SumTree(np.array([1.0, 2.0, 3.0, 4.0]))
        >>> tree.replace(np.array([1]), np.array([5.0]))
        >>> float(tree.total(slope=2.0, base=1.0))
        30.0
    """

    def __init__(self, values: Floats) -> None:
        self.depth = 0
        while -(-values.size // 2**self.depth) > MOST_BLOCKS:
            self.depth += 1
        self.num_blocks: int = -(-values.size // 2**self.depth)

        sums = np.zeros(self.num_blocks * 2**self.depth)
        sums[: values.size] = values
        counts = (sums != 0).astype(np.float32)
        self.num_missing = values.size - int(np.count_nonzero(values))
        self.sums: list[Floats] = [_aligned(sums)]
        self.counts: list[Counts] = [np.empty(0, dtype=np.float32)]
        for layer in range(1, self.depth + 1):
            sums = sums[::2] + sums[1::2]
            counts = counts[::2] + counts[1::2]
            is_even = layer % 2 == 0
            is_kept = is_even or layer == self.depth or sums.size <= SMALL_LAYER
            self.sums.append(_aligned(sums) if is_kept else sums[:0].copy())
            self.counts.append(counts if is_kept else counts[:0].copy())

    @property
    def values(self) -> Floats:
        """The value of every client, and 0 up to the end of the last block."""
        return self.sums[0]

    def replace(self, clients: Ints, values: Floats) -> None:
        """Set the values of some clients.

        Args:
            clients: Distinct client ids, [n].
            values: Their new values, [n]; 0 removes a client.
        """
        was_missing = self.values.take(clients) == 0
        is_missing = values == 0
        self.values[clients] = values
        nodes = clients
        for layer in range(1, self.depth + 1):
            nodes = nodes >> 1
            if self._keeps(layer):
                self._add_halves(layer, nodes)
        comes_or_goes = was_missing != is_missing
        if comes_or_goes.any():
            self.num_missing += int(is_missing.sum()) - int(was_missing.sum())
            self._recount(clients[comes_or_goes])

    def total(self, slope: float, base: float) -> float:
        """Return the mass of all clients."""
        return float(self.block_masses(slope, base).sum())

    def block_masses(self, slope: float, base: float) -> Floats:
        """Return the mass of every block; rounding makes none of them negative."""
        masses = slope * self.sums[-1]
        if base:
            blocks = np.arange(self.num_blocks)
            masses += np.multiply(self._count(self.depth, blocks), base, dtype=np.float64)
        return np.maximum(masses, 0.0, out=masses)

    def mass_before(self, client: int, slope: float, base: float) -> float:
        """Return the mass of the clients of a block that stand before one of them."""
        mass = 0.0
        node = client
        for layer in range(self.depth):
            if node & 1:
                before = np.array([node - 1])
                own = slope * float(self._sums_at(layer, before)[0])
                if base:
                    own += base * float(self._count(layer, before)[0])
                mass += own
            node >>= 1
        return mass

    def descend(
        self, blocks: Ints, places: Floats, slope: float, base: float
    ) -> tuple[Ints, Floats, Floats]:
        """Find the clients at places inside blocks.

        Args:
            blocks: A block with a mass for each place, [n].
            places: Mass from the start of the block to the place, above 0, [n].
            slope: Mass per value.
            base: Mass per client.

        Returns:
            The clients [n], the mass from the start of the client to the place [n], and the
            mass of the client [n], above 0.
        """
        nodes = blocks.copy()
        places = places.copy()
        # Buffers for all layers, because new arrays would push the tree out of the cache.
        left = np.empty(nodes.size)
        beyond = np.empty(nodes.size)
        left_bits = left.view(np.int64)
        is_right = beyond.view(np.int64)
        for layer in range(self.depth - 1, -1, -1):
            nodes <<= 1
            self._masses(layer, nodes, slope, base, out=left)
            np.subtract(left, places, out=beyond)
            is_right >>= 63  # the sign: -1, all bits set, if the place lies beyond the left half
            left_bits &= is_right
            places -= left
            nodes -= is_right

        masses = self._masses(0, nodes, slope, base)
        # Rounding can lead beyond the last client of a node: the place is the end of that client.
        for index in np.flatnonzero(masses <= 0):
            before = np.arange(nodes[index] >> self.depth << self.depth, nodes[index])
            own = self._masses(0, before, slope, base)
            last = np.flatnonzero(own > 0)[-1]
            nodes[index] = before[last]
            masses[index] = own[last]
            places[index] = own[last]
        return nodes, places, masses

    def above(self, limit: float, slope: float, base: float) -> Ints:
        """Return the clients whose mass lies above a limit, in ascending order.

        A node lighter than the limit holds none of them, so at most total / limit nodes are
        opened in each layer.
        """
        lightest = limit * (1 - ROUNDING)
        nodes = np.flatnonzero(self.block_masses(slope, base) > lightest)
        for layer in range(self.depth - 1, -1, -1):
            nodes = (2 * nodes[:, None] + np.arange(2)).reshape(-1)
            nodes = nodes[self._masses(layer, nodes, slope, base) > lightest]
        return nodes[self._masses(0, nodes, slope, base) > limit]

    def _masses(
        self, layer: int, nodes: Ints, slope: float, base: float, out: Floats | None = None
    ) -> Floats:
        """Return the masses of some nodes of a layer, as if the last block were full.

        Nobody lies beyond the last client: whoever descends to a place there is led back.
        """
        masses = self._sums_at(layer, nodes, out)
        counts: Counts | Bools | float = 2.0**layer
        if base and not layer:
            counts = masses != 0
        elif base and self.num_missing:
            counts = self._count(layer, nodes)
        if slope != 1:
            masses *= slope
        if base:
            masses += np.multiply(counts, base, dtype=np.float64)
        return masses

    def _keeps(self, layer: int) -> bool:
        """Return whether the sums of a layer are kept."""
        return self.sums[layer].size > 0

    def _sums_at(self, layer: int, nodes: Ints, out: Floats | None = None) -> Floats:
        """Return the sums of some nodes of a layer."""
        # All nodes are within bounds, and the mode spares a copy for when they are not.
        if self._keeps(layer):
            return self.sums[layer].take(nodes, out=out, mode="wrap")
        below = self.sums[layer - 1]
        half = nodes << 1
        sums = below.take(half, out=out, mode="wrap")
        half += 1
        sums += below.take(half, mode="wrap")
        return sums

    def _add_halves(self, layer: int, nodes: Ints) -> None:
        """Add anew the sums of these nodes, or of the whole layer if it is small."""
        sums = self.sums[layer]
        if sums.size > DENSE * nodes.size:
            half = nodes << 1
            added = self._sums_at(layer - 1, half)
            half += 1
            added += self._sums_at(layer - 1, half)
            sums[nodes] = added
            return
        halves = self.sums[layer - 1]
        if not self._keeps(layer - 1):
            halves = self.sums[layer - 2]
            halves = halves[::2] + halves[1::2]
        np.add(halves[::2], halves[1::2], out=sums)

    def _recount(self, clients: Ints) -> None:
        """Count anew the nodes above clients that came or went."""
        nodes = clients
        for layer in range(1, self.depth + 1):
            nodes = nodes >> 1
            if self._keeps(layer):
                left = nodes << 1
                counts = self._count(layer - 1, left)
                counts += self._count(layer - 1, left + 1)
                self.counts[layer][nodes] = counts

    def _count(self, layer: int, nodes: Ints) -> Counts:
        """Return how many clients some nodes of a layer count."""
        counts: Counts
        if not layer:
            counts = (self.values.take(nodes) != 0).astype(np.float32)
        elif self._keeps(layer):
            counts = self.counts[layer].take(nodes)
        else:
            left = nodes << 1
            counts = self._count(layer - 1, left)
            counts += self._count(layer - 1, left + 1)
        return counts


def _aligned(values: Floats) -> Floats:
    """Return a copy that starts with a line of the cache."""
    room = np.empty(values.size + CACHE_LINE // values.itemsize)
    skipped = -room.ctypes.data % CACHE_LINE // values.itemsize
    copy: Floats = room[skipped : skipped + values.size]
    copy[:] = values
    return copy
