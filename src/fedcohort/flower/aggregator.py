"""The new model of a round: by the wrapped strategy, or by a rule of fedcohort."""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.exception import AggregationError, InconsistentMessageReplies

from fedcohort.aggregation.base import Arrivals, Setting
from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.arrays import Floats
from fedcohort.flower.aggregation import apply_weights, data_shares
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.models import Model, is_finite, record_from_model
from fedcohort.flower.subsets import find_working_subset
from fedcohort.flower.text import describe_error, printable
from fedcohort.flower.verdicts import Verdict

log = logging.getLogger("flwr.fedcohort")
Returned = TypeVar("Returned")

RULES = ("paper", "normalised")  # those that need shares alone


@dataclass(frozen=True)
class Aggregate:
    """The outcome of an aggregation.

    Attributes:
        arrays: The new model; None if the model stays as it is.
        metrics: The averaged metrics; None if there are none.
        left_out: Positions of the replies that the strategy could not aggregate.
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
        aggregation: "wrapped" for the strategy's own, or a name of `RULES`.
        examples_key: Metric that holds the number of examples.
    """

    def __init__(self, inner: InnerStrategy, aggregation: str, examples_key: str) -> None:
        self.inner = inner
        self.aggregation = aggregation
        self.examples_key = examples_key

    def aggregate(
        self,
        server_round: int,
        model: Model,
        arrived: Sequence[Verdict],
        declared_examples: Sequence[float | None],
    ) -> Aggregate:
        """Return the new model and the averaged metrics.

        Replies on which the strategy raises an error are left out. If it raises one on all others,
        too, the model stays as it is, and the strategy is as before.

        Args:
            server_round: The round, counted from 1.
            model: The model that was sent.
            arrived: The verdicts on the replies that count.
            declared_examples: The number of examples of each client, None where it is unknown.
        """
        if not arrived:
            return Aggregate()

        def aggregate(positions: list[int]) -> tuple[Model, MetricRecord | None]:
            chosen = [arrived[position] for position in positions]
            new_model, metrics = self._apply_rule(server_round, model, chosen, declared_examples)
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
        return Aggregate(arrays, metrics, left_out, error)

    def _apply_rule(
        self,
        server_round: int,
        model: Model,
        arrived: Sequence[Verdict],
        declared_examples: Sequence[float | None],
    ) -> tuple[Model, MetricRecord | None]:
        replies = [fresh_reply(verdict.reply) for verdict in arrived if verdict.reply]
        if self.aggregation == "wrapped":
            return self.inner.aggregate(server_round, replies, model)

        trained = [verdict.model for verdict in arrived if verdict.model is not None]
        shares = data_shares([verdict.examples for verdict in arrived], declared_examples)
        rule = AGGREGATIONS[self.aggregation](Setting(1, len(declared_examples)))
        weights = rule.weigh(_arrivals(shares))[0]
        new_model = apply_weights(model, trained, weights, rule.normalises)
        return new_model, self.inner.average_metrics(replies, self.examples_key)


def _arrivals(shares: Floats) -> Arrivals:
    """Return one run in which clients with these shares arrived."""
    ones = np.ones((1, len(shares)))
    unknown = np.full(ones.shape, np.nan)
    clients = np.arange(len(shares))[None]
    return Arrivals(clients, ones > 0, shares[None], weights=ones, loss=unknown, norm=unknown)
