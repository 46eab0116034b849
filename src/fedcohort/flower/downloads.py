"""Download one reply over the network: part by part, within bounds, until cancelled."""

from collections.abc import Iterable
from typing import NamedTuple

from flwr.app import Message
from flwr.serverapp import Grid

from fedcohort.flower.flwr_internals import (
    Announcement,
    confirm_received,
    count_array_bytes,
    count_described_bytes,
    pull_object,
    read_reply,
)
from fedcohort.flower.text import describe_error
from fedcohort.flower.workers import Job

CHUNK_BYTES = 1_000_000  # Flower cuts arrays into chunks of 5 MB; smaller ones are allowed for
PART_BYTES = 1000  # that describe a part of the model: its name, its shape, the ids of its chunks


class ReplySize(NamedTuple):
    """The size of a reply: its bytes, and its parts, each of which takes a request."""

    bytes: int
    parts: int


SMALL_REPLY = ReplySize(1_000_000, 100)  # beside the model: metrics, configurations, names


def largest_reply(messages: Iterable[Message]) -> ReplySize:
    """Return how large replies to some messages may be: twice the model, and a little more."""
    most_bytes = 0
    most_parts = 0
    for message in messages:
        model = _model_size(message)
        most_bytes = max(most_bytes, model.bytes)
        most_parts = max(most_parts, model.parts)
    return ReplySize(2 * most_bytes + SMALL_REPLY.bytes, 2 * most_parts + SMALL_REPLY.parts)


def _model_size(message: Message) -> ReplySize:
    """Return the size of the arrays in a message: of each one part, and one for each chunk."""
    size = 0
    parts = 0
    if message.has_content():
        for record in message.content.array_records.values():
            size += record.count_bytes()
            for array in record.values():
                parts += 2 + len(array.data) // CHUNK_BYTES
    return ReplySize(size, parts)


class Download:
    """One reply on its way: the parts that have come so far.

    Args:
        grid: The grid to download from.
        announcement: The reply that was announced.
        largest: Largest size of the reply.

    Attributes:
        is_cancelled: Whether nobody wants the reply any more. Another thread may set it.
    """

    def __init__(self, grid: Grid, announcement: Announcement, largest: ReplySize) -> None:
        self.grid = grid
        self.announcement = announcement
        self.largest = largest
        self.contents: dict[str, bytes] = {}
        self.job: Job[Message | None] | None = None
        self.is_cancelled = False

    def fetch(self) -> Message | None:
        """Fetch the parts that are uploaded; return the reply once it is complete.

        Raises:
            ValueError: If the reply is too large, as soon as that is known, or cannot be read.
        """
        self._check_size(len(self.announcement.object_ids), self.largest.parts, "parts")
        for object_id in self.announcement.object_ids:
            if object_id in self.contents:
                continue
            if self.is_cancelled:
                self._drop()
                return None
            content = pull_object(self.grid, object_id)
            if content is None:
                return None
            self.contents[object_id] = content
            self._check_bytes(sum(map(len, self.contents.values())))
        confirm_received(self.grid, self.announcement.message_id)

        try:
            most = SMALL_REPLY.bytes + PART_BYTES * self.largest.parts
            described = count_described_bytes(self.contents)
            self._check_size(described, most, "bytes beside the numbers of its arrays")
            self._check_bytes(count_array_bytes(self.contents))
            reply = read_reply(self.announcement, self.contents)
        except Exception as error:  # the parts are here: whatever is wrong is wrong with them
            raise ValueError(describe_error(error)) from None
        # The client itself writes which message it answers.
        if reply.metadata.reply_to_message_id != self.announcement.reply_to:
            raise ValueError("it says that it is to another message")
        return reply

    def _check_bytes(self, size: int) -> None:
        self._check_size(size, self.largest.bytes, "bytes")

    def _check_size(self, size: int, most: int, unit: str) -> None:
        """Refuse a reply that is too large."""
        if size > most:
            self._drop()
            raise ValueError(f"it has at least {size} {unit}, more than {most}")

    def _drop(self) -> None:
        """Forget the reply, and let the SuperLink forget it."""
        self.contents.clear()
        confirm_received(self.grid, self.announcement.message_id)
