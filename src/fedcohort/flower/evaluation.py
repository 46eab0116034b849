"""An evaluation round: whom the strategy asks, and which answers it averages.

A client that hangs whenever it evaluates would cost a deadline in every round. So clients whose
evaluations do not count, three times in a row, are not asked to evaluate for a while.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from fedcohort.flower.aggregator import aggregate_what_works, fresh_reply
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.errors import TROUBLE
from fedcohort.flower.history import ReplyHistory
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.layouts import arrange_replies
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.replies import EVALUATION_CHECKS, Reply
from fedcohort.flower.text import printable
from fedcohort.flower.verdicts import explain_examples, verdict_of_error

log = logging.getLogger("flwr.fedcohort")


class Evaluation:
    """Plays evaluation rounds: `ask` returns the messages, `finish` averages the replies."""

    def __init__(
        self,
        inner: InnerStrategy,
        registry: ClientRegistry,
        rules: ReplyRules,
        history: ReplyHistory,
    ) -> None:
        self.inner = inner
        self.registry = registry
        self.rules = rules
        self.history = history
        self._asked: list[tuple[Message, str]] = []  # each message and the name of its client

    def ask(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Let the strategy choose whom to ask among the clients that are there and do not rest."""
        names = {}
        for index in self.registry.available:
            name = self.registry.name(index)
            if not self.history.evaluation_rests.rests(name, server_round):
                names[self.registry.node(index)] = name
        messages = self.inner.evaluate_messages(server_round, arrays, config, grid, list(names))
        self._asked = [(message, names[message.metadata.dst_node_id]) for message in messages]
        return messages

    def finish(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Let the strategy average the valid answers, and log why the others do not count."""
        # A message gets its id when it is sent, so the names are looked up only now.
        client_names = {message.metadata.message_id: name for message, name in self._asked}
        replies = list(replies)
        valid, complaints = judge_evaluations(replies, self.rules, client_names, self.history)
        self._let_rest(server_round, replies, valid, client_names)

        metrics = None
        if valid:
            metrics, left_out, error = self._average(server_round, valid)
            for position in left_out:
                client = sender(valid[position], client_names)
                complaints.append(f"client {client}: the strategy cannot average it: {error}")
        for complaint in complaints:
            log.warning("round %d: an evaluation does not count: %s", server_round, complaint)
        return metrics

    def _let_rest(
        self,
        server_round: int,
        replies: Sequence[Message],
        valid: Sequence[Message],
        client_names: Mapping[str, str],
    ) -> None:
        """Remember whose evaluation counts and whose does not, unless the SuperLink is to blame."""
        counted = {sender(reply, client_names) for reply in valid}
        excused = set()
        for reply in replies:
            if reply.has_error() and reply.error.code == TROUBLE:
                excused.add(sender(reply, client_names))
        for client in client_names.values():
            if client not in excused:
                status = "arrived" if client in counted else "rejected"
                self.history.evaluation_rests.record(client, status, server_round)

    def _average(
        self, server_round: int, valid: list[Message]
    ) -> tuple[MetricRecord | None, list[int], str]:
        """Return the averages, the positions of the answers left out, and the error on all."""

        def average(positions: list[int]) -> MetricRecord | None:
            chosen = [fresh_reply(valid[position]) for position in positions]
            return self.inner.strategy.aggregate_evaluate(server_round, chosen)

        metrics, left_out, error = aggregate_what_works(self.inner, len(valid), average)
        if error and not left_out:
            log.error(
                "round %d: the strategy cannot average the evaluations: %s", server_round, error
            )
        return metrics, left_out, error


def judge_evaluations(
    replies: Sequence[Message],
    rules: ReplyRules,
    client_names: Mapping[str, str],
    history: ReplyHistory | None = None,
) -> tuple[list[Message], list[str]]:
    """Return the evaluations that can be averaged, and a complaint for each of the others.

    Only metrics and configurations of an evaluation are handed on.

    Args:
        replies: Replies to the evaluation messages.
        rules: Limits and metric names.
        client_names: Name of the client by message id. It is needed because Flower answers for
            silent nodes in its own name.
        history: What earlier rounds taught; this round is added to it.
    """
    history = history or ReplyHistory()
    valid = {}
    examples = {}
    complaints = []
    for position, reply in enumerate(replies):
        try:
            if reply.has_error():
                raise ValueError(verdict_of_error(reply.error).reason)
            checked = Reply(reply.content, rules)
            for check in EVALUATION_CHECKS:
                check(checked)
            checked.rewrite()
        except Exception as error:  # a client may send anything, and must not end the run
            complaints.append(f"client {sender(reply, client_names)}: {printable(str(error))}")
        else:
            reply.content = checked.content
            valid[position] = reply
            examples[position] = checked.examples

    by_client = {}
    for position, number in examples.items():
        by_client[sender(valid[position], client_names)] = number
    bound = history.evaluation_examples.bound(rules.limits.examples_factor, by_client)
    history.evaluation_examples.add(by_client, bound)
    for position, number in examples.items():
        if number > bound:
            client = sender(valid.pop(position), client_names)
            complaints.append(f"client {client}: {explain_examples(rules, number, bound)}")

    for position in arrange_replies(valid, history.evaluation):
        reply = valid.pop(position)
        complaints.append(f"client {sender(reply, client_names)}: odd records")
    return list(valid.values()), complaints


def sender(reply: Message, client_names: Mapping[str, str]) -> str:
    """Return the name of the client that a reply comes from."""
    return client_names.get(reply.metadata.reply_to_message_id, "?")
