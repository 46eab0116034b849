"""The new model of a round: by the wrapped strategy, or by a rule of fedcohort."""

import logging
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.exception import AggregationError, InconsistentMessageReplies

from fedcohort.flower.cohorts import AnsweredCohort
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.models import Model, is_finite, record_from_model
from fedcohort.flower.server_rule import ServerRule
from fedcohort.flower.subsets import find_working_subset
from fedcohort.flower.text import describe_error, printable
from fedcohort.flower.update_memory import UpdateMemory

log = logging.getLogger("flwr.fedcohort")
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Aggregate:
    """The outcome of an aggregation.

    Attributes:
        arrays: The new model; None if the model stays as it is.
        metrics: The averaged metrics; None if there are none.
        left_out: Positions in the cohort of the replies that could not be aggregated.
        error: What the strategy raised on all replies together; empty if nothing.
    """

    arrays: ArrayRecord | None = None
    metrics: MetricRecord | None = None
    left_out: list[int] = field(default_factory=list)
    error: str = ""


def aggregate_what_works(
    inner: InnerStrategy, count: int, aggregate: Callable[[list[int]], Returned]
) -> tuple[Returned | None, list[int], str]:
    """Call a method of the strategy, without the replies on which it raises an error.

    The strategy is as before in each try, and as before in the end if no try succeeds.

    Args:
        inner: The wrapped strategy.
        count: Number of replies.
        aggregate: Calls the method with the replies at some positions.

    Returns:
        What the method returns, or None if it fails on all subsets that were tried; the positions
        of the replies that are left out; and the error on all replies, empty if there was none.
    """
    attributes = inner.copy_attributes()
    everyone = list(range(count))
    try:
        return aggregate(everyone), [], ""
    except Exception as error:  # whatever a strategy raises, the run goes on
        reason = _describe(error)

    def works(positions: list[int]) -> bool:
        inner.restore_attributes(attributes)
        try:
            aggregate(positions)
        except Exception:
            return False
        return True

    # The noise of a private strategy is drawn for all replies: fewer must not be tried.
    is_private = inner.num_sampled_clients is not None
    kept = [] if is_private else find_working_subset(count, works)
    inner.restore_attributes(attributes)
    if not kept:
        return None, [], reason
    try:
        result = aggregate(kept)
    except Exception:  # it worked a moment ago: the strategy acts at random
        inner.restore_attributes(attributes)
        return None, [], reason
    return result, [position for position in everyone if position not in kept], reason


def _describe(error: Exception) -> str:
    """Return what a strategy raised; Flower's own errors explain themselves."""
    if isinstance(error, AggregationError | InconsistentMessageReplies):
        return printable(str(error))
    return describe_error(error)


def fresh_reply(reply: Message) -> Message:
    """Return a copy of a reply whose records a strategy may change; it shares the numbers."""
    content = RecordDict()
    for name, arrays in reply.content.array_records.items():
        content[name] = ArrayRecord(dict(arrays))
    for name, metrics in reply.content.metric_records.items():
        content[name] = MetricRecord(dict(metrics))
    for name, config in reply.content.config_records.items():
        content[name] = config.copy()
    fresh = copy(reply)
    fresh.content = content
    return fresh


class Aggregator:
    """Turns the models that arrived into the next model.

    Args:
        inner: The wrapped strategy.
        aggregation: "wrapped" for the strategy's own, or a name of `AGGREGATIONS`.
        examples_key: Metric that holds the number of examples.
        folder: Folder of the run, for rules that remember updates; None if there is none.

    Attributes:
        rule: The aggregation rule; None if the strategy aggregates.
    """

    def __init__(
        self,
        inner: InnerStrategy,
        aggregation: str,
        examples_key: str,
        folder: Path | None = None,
    ) -> None:
        self.inner = inner
        self.examples_key = examples_key
        self.rule: ServerRule | None = None
        if aggregation != "wrapped":
            self.rule = ServerRule(aggregation, folder)

    @property
    def memory(self) -> UpdateMemory | None:
        """The last update of every client; None if they are not remembered."""
        return self.rule.memory if self.rule else None

    def begin(self, num_clients: int, state: dict[str, Any] | None, server_round: int = 0) -> None:
        """Begin with this many clients, or where `state_dict` was called.

        Args:
            num_clients: Number of clients of a new run.
            state: What `state_dict` returned; None for a new run.
            server_round: The round after which the state was taken.

        Raises:
            ValueError: If the state is not one of this aggregation.
        """
        if self.rule is not None:
            self.rule.begin(num_clients, state, server_round)

    def state_dict(self) -> dict[str, Any]:
        """Return what the rule has learnt; nothing if the strategy aggregates."""
        return self.rule.state_dict() if self.rule else {}

    def aggregate(self, server_round: int, answered: AnsweredCohort) -> Aggregate:
        """Return the new model and the averaged metrics, and let the rule learn.

        Replies on which the strategy raises an error are left out. If it raises one on all others,
        too, the model stays as it is, and the strategy is as before.

        Args:
            server_round: The round, counted from 1.
            answered: The cohort and the verdicts on it.
        """
        if self.rule is not None:
            self.rule.grow(len(answered.declared_examples))
        arrived = answered.arrived
        outcome = Aggregate()
        if arrived:
            outcome = self._aggregate_what_works(server_round, answered, arrived)
        if self.rule is not None:
            is_used = outcome.arrays is not None
            counted = [place for place in arrived if is_used and place not in outcome.left_out]
            self.rule.learn(server_round, answered, counted)
        return outcome

    def _aggregate_what_works(
        self, server_round: int, answered: AnsweredCohort, arrived: list[int]
    ) -> Aggregate:
        def aggregate(positions: list[int]) -> tuple[Model, MetricRecord | None]:
            chosen = [arrived[position] for position in positions]
            new_model, metrics = self._combine(server_round, answered, chosen)
            if not all(map(is_finite, new_model.values())):
                raise AggregationError("the aggregated model is not finite")
            return new_model, metrics

        result, left_out, error = aggregate_what_works(self.inner, len(arrived), aggregate)
        if result is None:
            log.error(
                "round %d: the strategy could not aggregate; the model stays as it was: %s",
                server_round,
                error,
            )
            return Aggregate(error=error)

        new_model, metrics = result
        arrays = record_from_model(new_model) if new_model else None
        return Aggregate(arrays, metrics, [arrived[position] for position in left_out], error)

    def _combine(
        self, server_round: int, answered: AnsweredCohort, chosen: list[int]
    ) -> tuple[Model, MetricRecord | None]:
        """Return the new model and the metrics by the replies at these positions."""
        replies = []
        for position in chosen:
            reply = answered.verdicts[position].reply
            if reply is not None:
                replies.append(fresh_reply(reply))
        if self.rule is None:
            return self.inner.aggregate(server_round, replies, answered.model)

        new_model = self.rule.move(answered, chosen)
        return new_model, self.inner.average_metrics(replies, self.examples_key)
