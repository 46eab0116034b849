"""Which nodes have left; those that left first are to be forgotten.

Each restart of a client makes another node, so they would fill the memory.
"""

from collections.abc import Collection

MOST_GONE = 1000  # nodes that have left and are remembered, or as many as were there at once


class Departures:
    """The nodes that have left, the first to leave first.

    So many are remembered that a large federation may be away for one listing.
    """

    def __init__(self) -> None:
        self._gone: dict[int, None] = {}  # a set that keeps its order
        self._most_nodes = 0  # that were there at once

    def take_oldest(self, known: Collection[int], nodes: Collection[int]) -> list[int]:
        """Note who has left and who has come back; return the nodes to forget.

        Args:
            known: All nodes of which something is known.
            nodes: The connected nodes.
        """
        for node in self._gone.keys() & set(nodes):
            del self._gone[node]  # it has come back
        for node in sorted(set(known) - set(nodes) - self._gone.keys()):
            self._gone[node] = None

        self._most_nodes = max(self._most_nodes, len(nodes))
        oldest = list(self._gone)[: -max(MOST_GONE, self._most_nodes)]
        for node in oldest:
            del self._gone[node]
        return oldest
