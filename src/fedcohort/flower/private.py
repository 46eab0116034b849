"""What of Flower is not public and used all the same, in one place; checked against flwr 1.40 and 1.41.

Elsewhere only `flwr.app`, `flwr.serverapp` and `flwr.clientapp` are imported. Besides what is below, `registry.py` reads the
fields `name`, `online_until` and `last_activated_at` of the protobuf messages that the public `Grid.get_nodes` returns.
"""

from collections.abc import Iterable

from flwr.app import Message
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.serverapp import Grid
from google.protobuf.message import DecodeError

# flwr.common.constant.ErrorCode
EXPIRED, REPLY_EXPIRED, NODE_GONE, CRASHED = 3, 4, 5, 8
UNDELIVERED = (EXPIRED, REPLY_EXPIRED, NODE_GONE)
# what Flower raises where a client's bytes are no message; errors of the network are others
NO_MESSAGE = (DecodeError, ValueError, TypeError, KeyError, IndexError, AttributeError)


def over_network(grid: Grid) -> bool:
    """Return whether a grid reaches its SuperLink over the network, as a deployment's does and the simulation's does not."""
    return hasattr(innermost(grid), "_runtime_client")


def innermost(grid: Grid) -> Grid:
    """Return the grid of Flower's own inside those of ours."""
    inner = getattr(grid, "grid", None)
    return grid if inner is None else innermost(inner)


def forget_undelivered(grid: Grid, replies: Iterable[Message]) -> None:
    """Remove the models of messages that no node fetched, as Flower itself answers: it forgets the message, not its content.

    Over HTTP the SuperLink drops a message's objects when its receipt is confirmed, which no node will do any more. In memory
    (simulation engine) there is nothing to remove.
    """
    grid = innermost(grid)
    client, node = getattr(grid, "_runtime_client", None), getattr(grid, "node", None)
    if client is None:
        return
    for reply in replies:
        if reply.has_error() and reply.error.code in UNDELIVERED:
            message = reply.metadata.reply_to_message_id
            client.ConfirmMessageReceived(
                ConfirmMessageReceivedRequest(
                    node=node, run_id=grid.run.run_id, message_object_id=message
                )
            )
