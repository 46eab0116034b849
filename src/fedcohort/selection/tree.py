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

from fedcohort.arrays import Floats, Ints

MOST_BLOCKS = 4096
ROUNDING = 1e-9  # relative: a node that holds a mass may seem lighter than it by this much

Counts = npt.NDArray[np.float32]  # exact up to 2^24 clients in a block


class SumTree:
    """Sums of values in blocks of 2^depth clients.

    Args:
        values: One finite value per client, shape [K]; 0 for nobody.

    Attributes:
        depth: Logarithm of the size of a block, to base 2.
        sums: Layers of sums, from the values themselves up to the sums of the blocks.
        counts: How many clients each of these sums counts; the first layer is empty, because
            its values tell.
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

        padded = np.zeros(self.num_blocks * 2**self.depth)
        padded[: values.size] = values
        self.sums: list[Floats] = [padded]
        self.counts: list[Counts] = [np.empty(0, dtype=np.float32)]
        counts = (padded != 0).astype(np.float32)
        self.num_missing = values.size - int(np.count_nonzero(values))
        for _ in range(self.depth):
            halves = self.sums[-1]
            self.sums.append(halves[::2] + halves[1::2])
            counts = counts[::2] + counts[1::2]
            self.counts.append(counts)

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
            left = nodes << 1
            below = self.sums[layer - 1]
            self.sums[layer][nodes] = below.take(left) + below.take(left + 1)
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
                value = float(self.sums[layer][node - 1])
                count = float(self.counts[layer][node - 1]) if layer else float(value != 0)
                mass += slope * value + base * count
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
        for layer in range(self.depth - 1, -1, -1):
            nodes <<= 1
            left = self._masses(layer, nodes, slope, base)
            is_right = places > left
            left *= is_right
            places -= left
            nodes += is_right

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

    def _masses(self, layer: int, nodes: Ints, slope: float, base: float) -> Floats:
        """Return the masses of some nodes of a layer, as if the last block were full.

        Nobody lies beyond the last client: whoever descends to a place there is led back.
        """
        sums = self.sums[layer].take(nodes)
        masses = sums if slope == 1 else slope * sums
        if base and not layer:
            masses = masses + base * (sums != 0)
        elif base and self.num_missing:
            masses += np.multiply(self.counts[layer].take(nodes), base, dtype=np.float64)
        elif base:
            masses += base * 2**layer
        return masses

    def _recount(self, clients: Ints) -> None:
        """Count anew the nodes above clients that came or went."""
        nodes = clients
        for layer in range(1, self.depth + 1):
            nodes = nodes >> 1
            left = nodes << 1
            self.counts[layer][nodes] = self._count(layer - 1, left) + self._count(
                layer - 1, left + 1
            )

    def _count(self, layer: int, nodes: Ints) -> Counts:
        """Return how many clients some nodes of a layer count."""
        counts: Counts
        if layer:
            counts = self.counts[layer].take(nodes)
        else:
            counts = (self.values.take(nodes) != 0).astype(np.float32)
        return counts
