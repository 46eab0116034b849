"""The Flower strategy inside CohortStrategy: checks, messages and aggregation."""

import logging
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.exception import AggregationError
from flwr.serverapp.strategy import (
    Bulyan,
    FedMedian,
    FedTrimmedAvg,
    FedXgbBagging,
    FedXgbCyclic,
    Krum,
    MultiKrum,
    Strategy,
)

from fedcohort.flower.forwarding import RestrictedGrid
from fedcohort.flower.models import Model, cast_model, model_from_record
from fedcohort.flower.strategy_layers import (
    class_names,
    copy_attributes,
    layers,
    restore_attributes,
)
from fedcohort.flower.strategy_state import MINIMUMS, load_state, save_state

log = logging.getLogger("flwr.fedcohort")

# These protect against clients that lie, by the way they aggregate.
ROBUST = (Bulyan, FedMedian, FedTrimmedAvg, Krum, MultiKrum)


def check_strategy(strategy: Strategy, aggregation: str, cohort_size: int) -> None:
    """Check that a strategy still does its job when it is wrapped.

    Raises:
        ValueError: If the strategy samples clients itself, collects trees, or would lose its
            protection against attacks or its privacy guarantee.
    """
    if not isinstance(strategy, Strategy):
        raise ValueError(f"strategy must be one of flwr.serverapp.strategy, got {strategy!r}")

    name = type(strategy).__name__
    wrapped = layers(strategy)
    for layer in wrapped:
        fraction = getattr(layer, "fraction_train", 1.0)
        if fraction != 1.0:
            raise ValueError(
                f"fraction_train of the strategy must be 1.0, "
                f"as the selector decides who trains, got {fraction}"
            )
    if any(isinstance(layer, FedXgbBagging | FedXgbCyclic) for layer in wrapped):
        raise ValueError(
            f"strategy must average arrays of fixed shapes, got {name}, which collects trees"
        )
    is_protection = len(wrapped) > 1 or isinstance(strategy, ROBUST)
    if aggregation != "wrapped" and is_protection:
        raise ValueError(
            f"aggregation must be 'wrapped' for {name}, whose protection it is, got {aggregation!r}"
        )

    inner = InnerStrategy(strategy)
    sampled = inner.num_sampled_clients
    if sampled is not None and sampled != cohort_size:
        raise ValueError(
            f"cohort_size must be num_sampled_clients of the strategy, {sampled}, got {cohort_size}"
        )
    if inner.setting("accountant") is not None:
        raise ValueError(
            "strategy must have no privacy accountant, "
            "which ends the run when a client fails, got one"
        )


class InnerStrategy:
    """Asks the wrapped strategy for messages and aggregates, and keeps its memory.

    Args:
        strategy: The wrapped strategy, before its first round.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._initial = copy_attributes(strategy)
        self._warned: set[str] = set()  # attributes that cannot be saved
        self._minimums: list[tuple[Strategy, str, int]] = []
        for layer in layers(strategy):
            for name in MINIMUMS:
                if hasattr(layer, name):
                    self._minimums.append((layer, name, getattr(layer, name)))

    def setting(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the outermost layer that has it."""
        for layer in layers(self.strategy):
            if hasattr(layer, name):
                return getattr(layer, name)
        return default

    @property
    def class_names(self) -> str:
        """The class of the strategy, and of those that it wraps."""
        return class_names(self.strategy)

    @property
    def num_sampled_clients(self) -> int | None:
        """Number of clients that a differentially private strategy draws its noise for."""
        number: int | None = self.setting("num_sampled_clients")
        return number

    def train_messages(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: Grid,
        nodes: list[int],
    ) -> list[Message]:
        """Return the strategy's training messages, one for each node and in their order.

        Raises:
            ValueError: If the strategy does not write exactly one message to each node.
        """
        if not nodes:
            return []
        restricted = self._restrict(grid, nodes)
        messages = list(self.strategy.configure_train(server_round, arrays, config, restricted))
        by_node = {message.metadata.dst_node_id: message for message in messages}
        if len(messages) != len(nodes) or set(by_node) != set(nodes):
            raise ValueError(
                f"strategy must write to each of the {len(nodes)} nodes it is shown, "
                f"got {len(messages)} messages"
            )

        ordered = [by_node[node] for node in nodes]
        for message in ordered:
            message.metadata.group_id = str(server_round)
        return ordered

    def evaluate_messages(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: Grid,
        nodes: list[int],
    ) -> list[Message]:
        """Return the strategy's evaluation messages, to some of these nodes."""
        restricted = self._restrict(grid, nodes)
        if not nodes:
            return []
        return list(self.strategy.configure_evaluate(server_round, arrays, config, restricted))

    def aggregate(
        self, server_round: int, replies: list[Message], model: Model
    ) -> tuple[Model, MetricRecord | None]:
        """Return the strategy's new model, in the types of the model sent, and its metrics.

        The model is empty if the strategy returns none.

        Raises:
            AggregationError: If too few clients answered for the noise of a private strategy, or
                the strategy returns other arrays than those sent.
        """
        if len(replies) < (self.num_sampled_clients or 0):
            raise AggregationError(f"{len(replies)} answers have too little noise to be private")
        arrays, metrics = self.strategy.aggregate_train(server_round, replies)
        if not arrays:
            return {}, metrics

        differences = set(arrays) ^ set(model)
        if differences:
            raise AggregationError(
                f"it has other arrays than the model sent: {', '.join(differences)}"
            )
        return cast_model(model_from_record(arrays), model), metrics

    def average_metrics(self, replies: list[Message], examples_key: str) -> MetricRecord | None:
        """Return the metrics as the strategy averages them; None if it does not average."""
        average = self.setting("train_metrics_aggr_fn")
        if not average:
            return None
        averaged: MetricRecord = average([reply.content for reply in replies], examples_key)
        return averaged

    def restore_minimums(self) -> None:
        """Give the strategy back the minimum numbers of nodes that it was made with."""
        for layer, name, minimum in self._minimums:
            setattr(layer, name, minimum)

    def state_dict(self) -> dict[str, Any]:
        """Return what the strategy keeps between rounds; warn once of what cannot be saved."""
        state, unsaved = save_state(self.strategy, self._initial)
        fresh = [name for name in unsaved if name not in self._warned]
        if fresh:
            log.warning(
                "the strategy has changed attributes that cannot be saved, so a resumed run begins "
                "without them: %s; state_dict and load_state_dict of the strategy can keep them",
                ", ".join(fresh),
            )
            self._warned.update(fresh)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what the strategy kept."""
        load_state(self.strategy, state)

    def copy_attributes(self) -> list[dict[str, Any]]:
        """Return all attributes, for `restore_attributes` to undo a failed aggregation."""
        return copy_attributes(self.strategy)

    def restore_attributes(self, copies: list[dict[str, Any]]) -> None:
        """Put the attributes back."""
        restore_attributes(self.strategy, copies)

    def _restrict(self, grid: Grid, nodes: list[int]) -> Grid:
        """Show the strategy only these nodes, and lower its minimums to their number.

        Flower's strategies wait forever if fewer nodes than their minimum are there.
        """
        for layer, name, minimum in self._minimums:
            setattr(layer, name, min(minimum, len(nodes)))
        return RestrictedGrid(grid, nodes)
