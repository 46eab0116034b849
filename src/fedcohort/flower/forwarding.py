"""A grid that passes all calls on, and one that shows a strategy only some nodes."""

from collections.abc import Iterable
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

MOST_LISTINGS = 5  # how often a strategy may list the nodes while it sets up one round


class ForwardingGrid(Grid):
    """A grid that passes every call on to another grid."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    @property
    def run(self) -> Any:
        return self.grid.run

    def set_run(self, run: Any) -> None:
        self.grid.set_run(run)

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return self.grid.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        return self.grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self.grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self.grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self.grid.send_and_receive(messages, timeout=timeout)


class RestrictedGrid(ForwardingGrid):
    """A grid that shows a strategy only the nodes that it may ask."""

    def __init__(self, grid: Grid, nodes: Iterable[int]) -> None:
        super().__init__(grid)
        self.nodes = list(nodes)
        self.listings = 0

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes shown.

        Raises:
            ValueError: If the strategy lists the nodes again and again. It waits for more nodes
                then, and would wait forever.
        """
        self.listings += 1
        if self.listings > MOST_LISTINGS:
            raise ValueError(
                f"the wrapped strategy must not wait for more nodes than "
                f"the {len(self.nodes)} it is given"
            )
        return list(self.nodes)

    def get_nodes(self) -> Iterable[Any]:
        return [node for node in self.grid.get_nodes() if node.node_id in set(self.nodes)]
