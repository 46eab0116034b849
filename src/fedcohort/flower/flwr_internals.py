"""The private parts of Flower that are used here, checked against flwr 1.40 and 1.41.

All other modules import only `flwr.app`, `flwr.serverapp` and `flwr.clientapp`. In addition,
`clients.py` reads the fields `name`, `online_until` and `last_activated_at` of the protobuf
messages that the public `Grid.get_nodes` returns.
"""

from collections.abc import Iterable

from flwr.app import Message
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.serverapp import Grid
from google.protobuf.message import DecodeError

# Values of flwr.common.constant.ErrorCode.
EXPIRED = 3
REPLY_EXPIRED = 4
NODE_GONE = 5
CRASHED = 8
UNDELIVERED = (EXPIRED, REPLY_EXPIRED, NODE_GONE)

# Flower raises these if the bytes of a client are not a message. Network errors are others.
UNREADABLE_ERRORS = (DecodeError, ValueError, TypeError, KeyError, IndexError, AttributeError)


def is_over_network(grid: Grid) -> bool:
    """Return whether a grid talks to its SuperLink over the network.

    The grid of a deployment does, the grid of the simulation engine does not.
    """
    return hasattr(innermost_grid(grid), "_runtime_client")


def innermost_grid(grid: Grid) -> Grid:
    """Return Flower's own grid inside the grids that wrap it."""
    inner = getattr(grid, "grid", None)
    if inner is None:
        return grid
    return innermost_grid(inner)


def forget_undelivered(grid: Grid, replies: Iterable[Message]) -> None:
    """Remove the models of messages that no node fetched.

    When Flower answers for a silent node, it deletes the message but keeps its content. Over HTTP
    the SuperLink drops the content once somebody confirms the receipt, and no node will do that any
    more. The simulation engine keeps everything in memory, so there is nothing to remove.
    """
    grid = innermost_grid(grid)
    client = getattr(grid, "_runtime_client", None)
    if client is None:
        return

    node = getattr(grid, "node", None)
    for reply in replies:
        if reply.has_error() and reply.error.code in UNDELIVERED:
            request = ConfirmMessageReceivedRequest(
                node=node,
                run_id=grid.run.run_id,
                message_object_id=reply.metadata.reply_to_message_id,
            )
            client.ConfirmMessageReceived(request)
