"""The private parts of Flower that are used here, checked against flwr 1.40 and 1.41.

All other modules import only `flwr.app`, `flwr.serverapp` and `flwr.clientapp`. In addition,
`clients.py` reads the fields `name`, `online_until` and `last_activated_at` of the protobuf
messages that the public `Grid.get_nodes` returns.
"""

import json
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, NamedTuple, cast

from flwr.app import Array, Message
from flwr.serverapp import Grid

SUPPORTED = "1.40 and 1.41"
try:
    import httpx
    from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest
    from flwr.proto.runtime_pb2 import PullAppMessagesRequest
    from flwr.supercore.inflatable.inflatable_object import (
        get_object_body,
        get_object_children_ids_from_object_content,
        get_object_type_from_object_content,
        iterate_object_tree,
    )
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
    from google.protobuf.message import DecodeError
except ImportError as error:
    raise ImportError(
        f"fedcohort.flower supports flwr {SUPPORTED}; flwr {version('flwr')} lacks what it uses: "
        f"{error}"
    ) from None

# Values of flwr.common.constant.ErrorCode.
NOT_LOADED = 1
EXPIRED = 3
REPLY_EXPIRED = 4
NODE_GONE = 5
CRASHED = 8
UNDELIVERED = (EXPIRED, REPLY_EXPIRED, NODE_GONE)

# Flower raises these if the bytes of a client are not a message. Network errors are others.
UNREADABLE_ERRORS = (DecodeError, ValueError, TypeError, KeyError, IndexError, AttributeError)

SERVER_ERROR = 500  # the first HTTP status that is an error of the server
LOCKED = "database is locked"

# What is used of the grid of a deployment, and of the client in it.
GRID_ATTRIBUTES = ("_runtime_client", "node", "run")
CLIENT_ATTRIBUTES = ("PullMessages", "PullObject", "ConfirmMessageReceived")


class MissingPart(Exception):
    """The SuperLink does not have a part of a reply, and will not get it."""


class Announcement(NamedTuple):
    """A reply whose sender has begun to upload it.

    Attributes:
        reply_to: The message that is answered, as the sender says.
        message_id: The reply's own id.
        object_ids: The parts of the reply.
    """

    reply_to: str
    message_id: str
    object_ids: list[str]


def check_flower(grid: Grid) -> None:
    """Check that Flower's grid has the private parts that are used.

    Raises:
        RuntimeError: If a part is missing; the text names Flower's version.
    """
    inner = innermost_grid(grid)
    is_flowers_own = type(inner).__module__.partition(".")[0] == "flwr"
    if not is_flowers_own or is_simulation(grid):
        return

    missing = [name for name in GRID_ATTRIBUTES if not _has(inner, name)]
    if "_runtime_client" not in missing:
        client = cast(Any, inner)._runtime_client
        missing += [name for name in CLIENT_ATTRIBUTES if not hasattr(client, name)]
    if missing:
        raise RuntimeError(
            f"fedcohort.flower supports flwr {SUPPORTED}; in flwr {version('flwr')} "
            f"{type(inner).__name__} lacks {', '.join(missing)}"
        )


def is_simulation(grid: Grid) -> bool:
    """Return whether a grid is that of the simulation engine, which keeps all in memory."""
    return hasattr(innermost_grid(grid), "state")


def is_over_network(grid: Grid) -> bool:
    """Return whether a grid talks to its SuperLink over the network.

    The grid of a deployment does, the grid of the simulation engine does not.
    """
    return _has(innermost_grid(grid), "_runtime_client")


def innermost_grid(grid: Grid) -> Grid:
    """Return Flower's own grid inside the grids that wrap it."""
    inner = getattr(grid, "grid", None)
    if inner is None:
        return grid
    return innermost_grid(inner)


def is_transient(error: Exception) -> bool:
    """Return whether an error of a call is trouble of the SuperLink that may pass."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= SERVER_ERROR
    if isinstance(error, httpx.TransportError | ConnectionError | TimeoutError):
        return True
    return LOCKED in str(error)


def pull_announcements(grid: Grid, message_ids: Iterable[str]) -> list[Announcement]:
    """Return the replies that have been announced, with one request for all messages."""
    client = cast(Any, innermost_grid(grid))._runtime_client
    response = client.PullMessages(PullAppMessagesRequest(message_ids=message_ids))

    announcements = []
    pairs = zip(response.messages_list, response.message_object_trees, strict=True)
    for message, tree in pairs:
        object_ids = [part.object_id for part in iterate_object_tree(tree)]
        metadata = message.metadata
        announcements.append(
            Announcement(metadata.reply_to_message_id, metadata.message_id, object_ids)
        )
    return announcements


def pull_object(grid: Grid, object_id: str) -> bytes | None:
    """Return a part of a reply, None if it is not uploaded yet.

    Raises:
        MissingPart: If the SuperLink does not have the part, and will not get it.
    """
    inner = cast(Any, innermost_grid(grid))
    request = PullObjectRequest(node=inner.node, run_id=inner.run.run_id, object_id=object_id)
    response = inner._runtime_client.PullObject(request)
    if not response.object_found:
        raise MissingPart(object_id)
    if not response.object_available:
        return None
    return cast(bytes, response.object_content)


def read_reply(announcement: Announcement, contents: dict[str, bytes]) -> Message:
    """Return a reply from its parts; raises one of `UNREADABLE_ERRORS` if they are none."""
    reply = inflate_object_from_contents(announcement.message_id, contents)
    if not isinstance(reply, Message):
        raise TypeError(f"a reply must be a message, got {type(reply).__name__}")
    reply.metadata.__dict__["_message_id"] = announcement.message_id
    return reply


def count_array_bytes(contents: dict[str, bytes]) -> int:
    """Return the bytes of all arrays of a reply once it is read.

    An array names the chunks of its bytes, and may name one chunk many times.
    """
    size = 0
    for content in contents.values():
        if get_object_type_from_object_content(content) != "Array":
            continue
        chunk_ids = get_object_children_ids_from_object_content(content)
        positions = json.loads(get_object_body(content, Array))["arraychunk_ids"]
        for position in positions:
            size += len(contents[chunk_ids[position]])
    return size


def count_described_bytes(contents: dict[str, bytes]) -> int:
    """Return the bytes of a reply without the numbers of its arrays.

    They are read as JSON and protobuf, which may take many times the memory of the bytes.
    """
    size = 0
    for content in contents.values():
        if get_object_type_from_object_content(content) != "ArrayChunk":
            size += len(content)
    return size


def confirm_received(grid: Grid, message_id: str) -> None:
    """Let the SuperLink drop the contents of a message."""
    inner = cast(Any, innermost_grid(grid))
    request = ConfirmMessageReceivedRequest(
        node=inner.node, run_id=inner.run.run_id, message_object_id=message_id
    )
    inner._runtime_client.ConfirmMessageReceived(request)


def undelivered_messages(replies: Iterable[Message]) -> list[str]:
    """Return the messages that no node fetched, as Flower's answers for silent nodes say.

    When Flower answers for a silent node, it deletes the message but keeps its content. Over HTTP
    the SuperLink drops the content once somebody confirms the receipt, and no node will do that any
    more. The simulation engine keeps everything in memory, so there is nothing to remove.
    """
    message_ids = []
    for reply in replies:
        if reply.has_error() and reply.error.code in UNDELIVERED:
            message_ids.append(reply.metadata.reply_to_message_id)
    return message_ids


def _has(grid: Grid, name: str) -> bool:
    """Return whether a grid has an attribute, without reading it: reading may connect."""
    return hasattr(type(grid), name) or name in vars(grid)
