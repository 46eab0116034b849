"""The new model of a round: by the wrapped strategy, or by a rule of fedcohort."""

import logging
from collections.abc import Sequence

from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.exception import AggregationError, InconsistentMessageReplies

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.flower.aggregation import apply_rule, data_shares
from fedcohort.flower.inner_strategy import InnerStrategy
from fedcohort.flower.models import Model, is_finite, record_from_model
from fedcohort.flower.verdicts import Verdict

log = logging.getLogger("flwr.fedcohort")


class Aggregator:
    """Turns the models that arrived into the next model.

    Args:
        inner: The wrapped strategy.
        aggregation: "wrapped" for the strategy's own, or a name of `AGGREGATIONS`.
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
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return the new model and the averaged metrics.

        Both are None if no model arrived or the aggregation fails. The strategy is then as before.

        Args:
            server_round: The round, counted from 1.
            model: The model that was sent.
            arrived: The verdicts on the replies that count.
            declared_examples: The number of examples of each client, None where it is unknown.
        """
        if not arrived:
            return None, None
        attributes = self.inner.copy_attributes()
        try:
            new_model, metrics = self._apply_rule(server_round, model, arrived, declared_examples)
            if not all(map(is_finite, new_model.values())):
                raise AggregationError("the aggregated model is not finite")
        except (AggregationError, InconsistentMessageReplies) as error:
            log.error(
                "round %d: the strategy could not aggregate; the model stays as it was: %s",
                server_round,
                error,
            )
            self.inner.restore_attributes(attributes)
            return None, None

        if not new_model:
            return None, metrics
        return record_from_model(new_model), metrics

    def _apply_rule(
        self,
        server_round: int,
        model: Model,
        arrived: Sequence[Verdict],
        declared_examples: Sequence[float | None],
    ) -> tuple[Model, MetricRecord | None]:
        replies: list[Message] = [verdict.reply for verdict in arrived if verdict.reply]
        if self.aggregation == "wrapped":
            return self.inner.aggregate(server_round, replies, model)

        trained = [verdict.model for verdict in arrived if verdict.model is not None]
        shares = data_shares([verdict.examples for verdict in arrived], declared_examples)
        new_model = apply_rule(AGGREGATIONS[self.aggregation], model, trained, shares)
        return new_model, self.inner.average_metrics(replies, self.examples_key)
