"""Rounds that close early: when enough replies count, and what becomes of the others."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

from flwr.app import Message

from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.cohorts import AskedCohort
from fedcohort.flower.deadlines import DeadlinePolicy
from fedcohort.flower.history import ReplyHistory
from fedcohort.flower.late import LateAnswer
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.verdicts import Verdict, judge_reply, judge_training, verdict_of_error

LATE = Verdict("late", "enough others had answered")


def count_valid(
    asked: AskedCohort,
    replies: Iterable[Message],
    rules: ReplyRules,
    history: ReplyHistory,
    clients: Sequence[str],
) -> int:
    """Return how many replies would count if the round ended now.

    Each reply is read once and its verdict is kept in `asked.judged`. What replies are compared
    with, and their records, stay as they are.

    Args:
        asked: The round.
        replies: The replies so far.
        rules: Limits and metric names.
        history: What earlier rounds taught.
        clients: Names of the clients that were asked.
    """
    by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
    trial = {}
    for message in asked.messages:
        message_id = message.metadata.message_id
        reply = by_message.get(message_id)
        if reply is None:
            continue
        if message_id not in asked.judged:
            asked.judged[message_id] = judge_reply(reply, asked.model, rules)
        verdict = asked.judged[message_id]
        trial[message_id] = replace(verdict, reply=copy(verdict.reply))
    verdicts = judge_training(
        asked.messages, by_message, asked.model, rules, deepcopy(history), clients, judged=trial
    )
    return sum(verdict.status == "arrived" for verdict in verdicts)


class UnneededClients:
    """The clients that their rounds did not wait for, until it is known what became of them.

    Args:
        registry: The clients.
        deadlines: Learns how long they took.

    Attributes:
        take_late: Returns new answers to messages of closed rounds; the run sets it.
    """

    def __init__(self, registry: ClientRegistry, deadlines: DeadlinePolicy) -> None:
        self.registry = registry
        self.deadlines = deadlines
        self.take_late: Callable[[], list[LateAnswer]] = list
        self._asked: dict[str, tuple[int, int, int]] = {}  # round, client, node by message id
        self._rows: list[dict[str, Any]] = []

    def add(self, message: Message, server_round: int, client: int) -> None:
        """Remember a client whose round closed before it answered."""
        metadata = message.metadata
        self._asked[metadata.message_id] = (server_round, client, metadata.dst_node_id)

    def take_rows(self) -> list[dict[str, Any]]:
        """Return what came of some of them since the last call, as the journal holds it."""
        self.resolve()
        rows = self._rows
        self._rows = []
        return rows

    def resolve(self) -> None:
        """Learn what became of those whose answers have come, or whose time is over.

        A model that comes late is discarded, but its time is known now. A client that never
        answered is lost: it is not asked again before it gives a sign of life.
        """
        for answer in self.take_late():
            asked = self._asked.pop(answer.message_id, None)
            if asked is None:
                continue
            server_round, client, node = asked
            verdict = LATE if answer.error is None else verdict_of_error(answer.error)
            self.registry.record_verdict(client, node, verdict)
            status = "arrived" if verdict is LATE else verdict.status
            self.deadlines.record(status, answer.seconds)
            self._rows.append(
                {
                    "client": self.registry.name(client),
                    "round": server_round,
                    "status": verdict.status,
                    "seconds": round(answer.seconds, 3),
                }
            )
