"""A training round: who is there, who is asked, which replies count, who is told."""

import logging
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from fedcohort.arrays import Floats
from fedcohort.flower.aggregator import Aggregate, Aggregator
from fedcohort.flower.attendance import find_absent, find_available, name_values
from fedcohort.flower.availability import wait_for_enough
from fedcohort.flower.backoff import BackOff
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.closing import UnneededClients, count_valid
from fedcohort.flower.cohorts import (
    AnsweredCohort,
    AskedCohort,
    add_seconds,
    describe_outcome,
    seconds_waited,
)
from fedcohort.flower.data_sizes import DataSizes, plausible_examples
from fedcohort.flower.deadlines import DeadlinePolicy
from fedcohort.flower.history import ReplyHistory
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.journal import Journal, Totals, round_row
from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.models import model_from_record
from fedcohort.flower.selection import inclusion_probabilities
from fedcohort.flower.verdicts import Verdict, judge_training, rejected
from fedcohort.selection import asking
from fedcohort.selection.protocol import Selector

log = logging.getLogger("flwr.fedcohort")
OnRow = Callable[[dict[str, Any]], None]


class Training:
    """Plays training rounds: `ask` sends a cohort to work, `finish` uses its replies.

    Args:
        inner: The wrapped strategy.
        registry: The clients.
        rules: What a reply must keep.
        history: What earlier rounds taught about replies; it is shared with evaluation rounds.
        aggregator: Turns the models that arrived into the next model.
        data_sizes: What the selector is told of the clients' data.
        least_clients: Number of clients that must be there before a round begins.
        pause: Longest time to wait for them, in seconds.
        enough: Number of valid answers at which a round closes; None waits for all.
        deadlines: Sets the deadline of each round.

    Attributes:
        troubles: What went wrong with the SuperLink in this round; the run sets it.
        unneeded: The clients that their rounds did not wait for.
        on_row: Is called with each row of the journal; the run sets it.
    """

    def __init__(
        self,
        inner: InnerStrategy,
        registry: ClientRegistry,
        rules: ReplyRules,
        history: ReplyHistory,
        *,
        aggregator: Aggregator,
        data_sizes: DataSizes,
        least_clients: int,
        pause: float,
        enough: int | None,
        deadlines: DeadlinePolicy,
    ) -> None:
        self.inner = inner
        self.registry = registry
        self.rules = rules
        self.history = history
        self.aggregator = aggregator
        self.data_sizes = data_sizes
        self.least_clients = least_clients
        self.pause = pause
        self.enough = enough
        self.deadlines = deadlines
        self.totals = Totals()
        self.journal = Journal(None)
        self.on_row: OnRow | None = None
        self.troubles: list[str] = []
        self.unneeded = UnneededClients(registry, deadlines)
        self.back_off = BackOff()
        self._selector: Selector | None = None
        self._asked: AskedCohort | None = None

    @property
    def selector(self) -> Selector:
        """The selector; it is built when the clients are known."""
        if self._selector is None:
            raise ValueError("start must be called before a round is configured")
        return self._selector

    def begin(
        self,
        selector: Selector,
        totals: Totals,
        journal: Journal,
        memory: dict[str, Any] | None,
        done: int = 0,
    ) -> None:
        """Set what a run begins with, or resumes with.

        Args:
            selector: The selector.
            totals: Counts over the rounds before.
            journal: Where the rounds are written.
            memory: What `state_dict` returned; None for a new run.
            done: Number of rounds that are finished.
        """
        rule_state = None if memory is None else memory.get("rule", {})
        memory = memory or {}
        self._selector = selector
        self.totals = totals
        self.journal = journal
        self.back_off.load_state_dict(memory.get("back_off", {}))
        self.history.load_state_dict(memory.get("history", {}))
        self.deadlines.load_state_dict(memory.get("deadlines", {}))
        self.aggregator.begin(selector.num_clients, rule_state, done)

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered of replies, for `begin` to resume with."""
        return {
            "back_off": self.back_off.state_dict(),
            "history": self.history.state_dict(),
            "deadlines": self.deadlines.state_dict(),
            "rule": self.aggregator.state_dict(),
        }

    def ask(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Let the selector choose a cohort, and return the strategy's messages to it."""
        # The pause is no part of the round, so nobody has less time because of it. A look at who
        # is there without a pause is.
        called_at = monotonic()
        paused = wait_for_enough(self.registry, grid, self.least_clients, self.pause)
        started_at = called_at + paused
        self.unneeded.resolve()
        available, resting = find_available(
            self.registry, self.selector, self.back_off, server_round
        )
        self.data_sizes.tell(self.selector, self.registry, self._most_examples())
        inclusion = inclusion_probabilities(self.selector, server_round - 1, available)
        probabilities = name_values(self.registry, inclusion)
        cohort = asking.ask(self.selector, server_round - 1, available)

        nodes = [self.registry.node(index) for index in cohort.clients.tolist()]
        messages = self.inner.train_messages(server_round, arrays, config, grid, nodes)

        model = model_from_record(arrays)
        absent = find_absent(self.registry, available)
        self._asked = AskedCohort(
            cohort, messages, model, probabilities, started_at, paused, resting, absent, available
        )
        return messages

    def has_enough(self, replies: Sequence[Message]) -> bool:
        """Return whether so many replies count that the round may close.

        They are judged as at the end of the round, but nothing is remembered of it.
        """
        asked = self._asked
        if asked is None or self.enough is None or len(replies) < self.enough:
            return False
        clients = self._names(asked)
        valid = count_valid(asked, replies, self.rules, self.history, clients)
        asked.is_closed = valid >= self.enough
        return asked.is_closed

    def finish(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Judge the replies, aggregate those that count, and tell the selector who returned."""
        asked = self._asked
        self._asked = None
        if asked is None:
            raise ValueError("configure_train must be called before aggregate_train")

        by_message = {reply.metadata.reply_to_message_id: reply for reply in replies}
        verdicts = judge_training(
            asked.messages,
            by_message,
            asked.model,
            self.rules,
            self.history,
            self._names(asked),
            judged=asked.judged,
            is_closed=asked.is_closed,
        )
        waited = seconds_waited(asked.messages, by_message, verdicts, self._seconds_since(asked))
        verdicts = add_seconds(verdicts, waited)
        aggregate = self._aggregate(server_round, asked, verdicts)

        self._record_verdicts(server_round, asked, verdicts, waited)
        self._update_selector(server_round, asked, verdicts, waited)
        self._write_journal(server_round, asked, verdicts, aggregate.error)
        return aggregate.arrays, aggregate.metrics

    def _names(self, asked: AskedCohort) -> list[str]:
        return [self.registry.name(index) for index in asked.cohort.clients.tolist()]

    def _aggregate(
        self, server_round: int, asked: AskedCohort, verdicts: list[Verdict]
    ) -> Aggregate:
        """Aggregate the replies that count, and reject those that the strategy cannot use."""
        # A client that came during the round takes part from the next round on.
        declared = self.registry.examples[: self.selector.num_clients]
        for client, verdict in zip(asked.cohort.clients.tolist(), verdicts, strict=True):
            if verdict.status == "arrived":
                declared[client] = verdict.examples
        declared = plausible_examples(declared, self._most_examples())

        answered = AnsweredCohort(asked.cohort, verdicts, asked.model, declared, asked.available)
        aggregate = self.aggregator.aggregate(server_round, answered)
        for position in aggregate.left_out:
            verdicts[position] = rejected(f"the strategy cannot aggregate it: {aggregate.error}")
        return aggregate

    def _most_examples(self) -> float:
        """Return the largest number of examples that a client may declare now."""
        return self.history.examples.bound(self.rules.limits.examples_factor, {})

    def _record_verdicts(
        self, server_round: int, asked: AskedCohort, verdicts: list[Verdict], waited: Floats
    ) -> None:
        indices = asked.cohort.clients.tolist()
        for position, (index, verdict) in enumerate(zip(indices, verdicts, strict=True)):
            message = asked.messages[position]
            self.registry.record_verdict(index, message.metadata.dst_node_id, verdict)
            self.back_off.record(self.registry.name(index), verdict.status, server_round)
            self.deadlines.record(verdict.status, waited[position])
            if verdict.status == "unneeded":
                self.unneeded.add(message, server_round, index)

    def _update_selector(
        self, server_round: int, asked: AskedCohort, verdicts: list[Verdict], waited: Floats
    ) -> None:
        """Tell the selector who returned, unless trouble of the SuperLink hides it."""
        if any(verdict.status == "unknown" for verdict in verdicts):
            log.warning("round %d: the selector learns nothing from it", server_round)
            return
        has_losses = self.rules.loss_key is not None
        self.selector.update(describe_outcome(asked.cohort, verdicts, waited, has_losses))

    def _seconds_since(self, asked: AskedCohort) -> float:
        """Return how long a round took, at most until the deadline."""
        seconds = monotonic() - asked.started_at
        deadline = self.deadlines.current
        return seconds if deadline is None else min(seconds, deadline)

    def _write_journal(
        self, server_round: int, asked: AskedCohort, verdicts: list[Verdict], error: str
    ) -> None:
        names = self._names(asked)
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
            resting=asked.resting,
            error=error,
            deadline=None if self.deadlines.is_fixed else self.deadlines.current,
            late=self.unneeded.take_rows(),
            absent=asked.absent,
        )
        self.journal.write(row)
        if self.on_row is not None:
            self.on_row(row)

    def _log_round(self, server_round: int, names: list[str], verdicts: list[Verdict]) -> None:
        statuses = [verdict.status for verdict in verdicts]
        parts = [f"{name} {status}" for name, status in zip(names, statuses, strict=True)]
        log.info("round %d: %s", server_round, ", ".join(parts) or "nobody")

        nobody_in_time = statuses and all(status in ("stopped", "lost") for status in statuses)
        deadline = self.deadlines.current
        if deadline is not None and nobody_in_time:
            log.warning(
                "round %d: nobody returned within the deadline of %g s", server_round, deadline
            )
