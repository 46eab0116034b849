"""A training round: who is there, who is asked, which replies count, who is told."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from fedcohort.arrays import Ints
from fedcohort.flower.aggregator import Aggregator
from fedcohort.flower.availability import wait_for_enough
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.journal import Journal, Totals, round_row
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.models import Model, model_from_record
from fedcohort.flower.selection import inclusion_probabilities
from fedcohort.flower.verdicts import Verdict, judge_training
from fedcohort.selection.protocol import Cohort, Outcome, Selector

log = logging.getLogger("flwr.fedcohort")


@dataclass
class AskedCohort:
    """A round that waits for its replies.

    Attributes:
        cohort: The clients that the selector chose.
        messages: The messages to them, in the same order.
        model: The model that the messages carry.
        probabilities: Each client's probability of being asked, by name; None if not known.
        started_at: When the round began.
        paused: Seconds that the run paused before the round.
    """

    cohort: Cohort
    messages: list[Message]
    model: Model
    probabilities: dict[str, float] | None
    started_at: float
    paused: float


class Training:
    """Plays training rounds: `ask` sends a cohort to work, `finish` uses its replies.

    Args:
        inner: The wrapped strategy.
        registry: The clients.
        rules: What a reply must keep.
        aggregation: Name of the aggregation rule.
        cohort_size: Number of clients to ask in each round.
        enough: Number of clients that must be there before a round begins.
        pause: Longest time to wait for them, in seconds.
        deadline: Seconds that a round may take; None for no limit.

    Attributes:
        troubles: What went wrong with the SuperLink in this round; the run sets it.
    """

    def __init__(
        self,
        inner: InnerStrategy,
        registry: ClientRegistry,
        rules: ReplyRules,
        *,
        aggregation: str,
        cohort_size: int,
        enough: int,
        pause: float,
        deadline: float | None,
    ) -> None:
        self.inner = inner
        self.registry = registry
        self.rules = rules
        self.aggregator = Aggregator(inner, aggregation, rules.examples_key)
        self.cohort_size = cohort_size
        self.enough = enough
        self.pause = pause
        self.deadline = deadline
        self.totals = Totals()
        self.journal = Journal(None)
        self.troubles: list[str] = []
        self._selector: Selector | None = None
        self._asked: AskedCohort | None = None

    @property
    def selector(self) -> Selector:
        """The selector; it is built when the clients are known."""
        if self._selector is None:
            raise ValueError("start must be called before a round is configured")
        return self._selector

    def begin(self, selector: Selector, totals: Totals, journal: Journal) -> None:
        """Set what a run begins with, or resumes with."""
        self._selector = selector
        self.totals = totals
        self.journal = journal

    def ask(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Let the selector choose a cohort, and return the strategy's messages to it."""
        # The pause is no part of the round, so nobody has less time because of it.
        paused = wait_for_enough(self.registry, grid, self.enough, self.pause)
        started_at = monotonic()
        available = self._find_available()
        probabilities = self._probabilities(server_round, available)
        cohort = self.selector.select(server_round - 1, available)

        nodes = [self.registry.node(index) for index in cohort.clients.tolist()]
        messages = self.inner.train_messages(server_round, arrays, config, grid, nodes)

        model = model_from_record(arrays)
        self._asked = AskedCohort(cohort, messages, model, probabilities, started_at, paused)
        return messages

    def finish(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Judge the replies, aggregate those that count, and tell the selector who returned."""
        asked = self._asked
        self._asked = None
        if asked is None:
            raise ValueError("configure_train must be called before aggregate_train")

        by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
        verdicts = judge_training(asked.messages, by_message, asked.model, self.rules)
        self._record_verdicts(asked, verdicts)

        # A client that came during the round takes part from the next round on.
        declared_examples = self.registry.examples[: self.selector.num_clients]
        arrived = [verdict for verdict in verdicts if verdict.status == "arrived"]
        arrays, metrics = self.aggregator.aggregate(
            server_round, asked.model, arrived, declared_examples
        )

        self._update_selector(server_round, asked.cohort, verdicts)
        self._write_journal(server_round, asked, verdicts)
        return arrays, metrics

    def _find_available(self) -> Ints | None:
        """Return the indices of the clients that are there; None if all of them are."""
        newcomers = len(self.registry) - self.selector.num_clients
        if newcomers > 0:
            self.selector.join(newcomers)

        available = self.registry.available
        if len(available) < self.cohort_size:
            log.warning(
                "%d clients are there, fewer than the %d to ask", len(available), self.cohort_size
            )
        if len(available) == self.selector.num_clients:
            return None
        return np.array(available, dtype=np.int64)

    def _probabilities(self, server_round: int, available: Ints | None) -> dict[str, float] | None:
        """Return each known client's probability of being asked, by name."""
        values = inclusion_probabilities(self.selector, server_round - 1, available)
        if values is None:
            return None
        by_name = {}
        for client, probability in zip(self.registry.clients, values, strict=True):
            if client:
                by_name[client.name] = round(probability, 6)
        return by_name

    def _record_verdicts(self, asked: AskedCohort, verdicts: list[Verdict]) -> None:
        indices = asked.cohort.clients.tolist()
        for index, message, verdict in zip(indices, asked.messages, verdicts, strict=True):
            self.registry.record_verdict(index, message.metadata.dst_node_id, verdict)

    def _update_selector(self, server_round: int, cohort: Cohort, verdicts: list[Verdict]) -> None:
        """Tell the selector who returned, unless trouble of the SuperLink hides it."""
        if any(verdict.status == "unknown" for verdict in verdicts):
            log.warning("round %d: the selector learns nothing from it", server_round)
            return
        success = np.array([verdict.status == "arrived" for verdict in verdicts], dtype=np.bool_)
        losses: Any = None
        if self.rules.loss_key:
            losses = np.array([verdict.loss for verdict in verdicts])
        self.selector.update(Outcome(cohort, success, losses))

    def _write_journal(
        self, server_round: int, asked: AskedCohort, verdicts: list[Verdict]
    ) -> None:
        names = [self.registry.name(index) for index in asked.cohort.clients.tolist()]
        self.totals.add(names, verdicts)
        self._log_round(server_round, names, verdicts)
        row = round_row(
            server_round,
            seconds=monotonic() - asked.started_at,
            clients=names,
            inclusion=asked.cohort.inclusion.tolist(),
            verdicts=verdicts,
            known=[client.name for client in self.registry.known],
            totals=self.totals,
            probabilities=asked.probabilities,
            troubles=self.troubles,
            paused=asked.paused,
        )
        self.journal.write(row)

    def _log_round(self, server_round: int, names: list[str], verdicts: list[Verdict]) -> None:
        statuses = [verdict.status for verdict in verdicts]
        parts = [f"{name} {status}" for name, status in zip(names, statuses, strict=True)]
        log.info("round %d: %s", server_round, ", ".join(parts) or "nobody")

        nobody_in_time = statuses and all(status in ("stopped", "lost") for status in statuses)
        if self.deadline is not None and nobody_in_time:
            log.warning(
                "round %d: nobody returned within the deadline of %g s", server_round, self.deadline
            )
