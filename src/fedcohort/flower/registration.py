"""Who is who in the simulation engine, by the order in which it registered its nodes.

The engine plays one message after the other, so asking each of thousands of nodes for its name
would delay the first round. It registers the node of partition 0 first, then that of partition 1,
and so on. So a few nodes are asked, and if each of them says that it is the partition that its turn
makes it, the others are named by their turns.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

PROBES = 16  # nodes that are asked
FEWEST_NODES = 4 * PROBES  # with fewer, all are asked


def names_by_turn(nodes: Mapping[int, Any]) -> dict[int, str]:
    """Return the partition that each node would be if it were registered in its turn.

    Args:
        nodes: The connected nodes by id.

    Returns:
        The names by node, in the order of registration. Empty if there are few nodes, if some are
        registered under a name, or if the order is not known.
    """
    if len(nodes) < FEWEST_NODES or any(info.name for info in nodes.values()):
        return {}
    try:
        times = {node: datetime.fromisoformat(nodes[node].registered_at) for node in nodes}
    except ValueError:
        return {}
    if len(set(times.values())) < len(times):
        return {}
    return {node: str(turn) for turn, node in enumerate(sorted(times, key=times.__getitem__))}


def choose_probes(names: Mapping[int, str]) -> list[int]:
    """Return the nodes to ask: the first one, the last one, and some between; none of none."""
    if not names:
        return []
    nodes = list(names)
    last = len(nodes) - 1
    return [nodes[last * number // (PROBES - 1)] for number in range(PROBES)]
