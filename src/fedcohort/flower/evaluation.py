"""An evaluation round: whom the strategy asks, and which answers it averages."""

import logging
from collections.abc import Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.verdicts import judge_evaluations

log = logging.getLogger("flwr.fedcohort")


class Evaluation:
    """Plays evaluation rounds: `ask` returns the messages, `finish` averages the replies."""

    def __init__(self, inner: InnerStrategy, registry: ClientRegistry, rules: ReplyRules) -> None:
        self.inner = inner
        self.registry = registry
        self.rules = rules
        self._asked: list[tuple[Message, str]] = []  # each message and the name of its client

    def ask(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Let the strategy choose whom to ask among the clients that are there."""
        names = {}
        for index in self.registry.available:
            names[self.registry.node(index)] = self.registry.name(index)
        messages = self.inner.evaluate_messages(server_round, arrays, config, grid, list(names))
        self._asked = [(message, names[message.metadata.dst_node_id]) for message in messages]
        return messages

    def finish(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Let the strategy average the valid answers, and log why the others do not count."""
        # A message gets its id when it is sent, so the names are looked up only now.
        client_names = {message.metadata.message_id: name for message, name in self._asked}
        valid, complaints = judge_evaluations(list(replies), self.rules, client_names)
        for complaint in complaints:
            log.warning("round %d: an evaluation does not count: %s", server_round, complaint)
        if not valid:
            return None
        return self.inner.strategy.aggregate_evaluate(server_round, valid)
