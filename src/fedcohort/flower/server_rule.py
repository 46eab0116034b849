"""An aggregation rule of fedcohort on Flower: it weighs the updates of a round and learns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flwr.serverapp.exception import AggregationError

from fedcohort.aggregation.base import Arrivals, Rule, Setting
from fedcohort.aggregation.registry import AGGREGATIONS, find_rule, make_rule
from fedcohort.arrays import Bools, Floats
from fedcohort.checks import check_int
from fedcohort.flower.aggregation import apply_weights, data_shares, sum_of_weights
from fedcohort.flower.cohorts import AnsweredCohort, update_norms
from fedcohort.flower.models import Model
from fedcohort.flower.update_memory import LARGEST_UPDATE, UpdateMemory
from fedcohort.references import check_name


def check_aggregation(aggregation: str, folder: str | Path | None) -> None:
    """Check that Flower can give an aggregation all that it needs.

    Raises:
        ValueError: If the name is unknown, the rule needs what a server does not know, or it
            remembers updates and there is no folder for them.
    """
    if aggregation == "wrapped":
        return
    check_name("aggregation", aggregation, ["wrapped", *AGGREGATIONS])
    find_rule(aggregation)
    try:
        rule = make_rule(aggregation, Setting(num_runs=1, num_clients=1))
    except ValueError as error:
        raise ValueError(
            f"aggregation must not need what a Flower server does not know, "
            f"got {aggregation!r}: {error}"
        ) from None
    if rule.remembers_updates and folder is None:
        raise ValueError(
            f"folder must be given for aggregation {aggregation!r}, "
            "which keeps the last update of every client there, got None"
        )


class ServerRule:
    """The rule of one run, and what it has learnt.

    Args:
        aggregation: A registered name or a reference that `check_aggregation` accepts.
        folder: Folder of the run; None if there is none.

    Attributes:
        rule: The rule.
        memory: The last update of every client; None if the rule does not remember updates.
    """

    def __init__(self, aggregation: str, folder: Path | None = None) -> None:
        self.aggregation = aggregation
        self.rule = self._make(0)
        self.memory: UpdateMemory | None = None
        if self.rule.remembers_updates and folder is not None:
            self.memory = UpdateMemory(folder)

    def begin(self, num_clients: int, state: dict[str, Any] | None, server_round: int = 0) -> None:
        """Begin with clients of which nothing is known, or where a state was taken.

        Args:
            num_clients: Number of clients of a new run.
            state: What `state_dict` returned; None for a new run. It may be empty for rules that
                learn nothing: older checkpoints do not have it.
            server_round: The round after which the state was taken.

        Raises:
            ValueError: If the state is not one of this rule.
        """
        if state is not None:
            num_clients = check_int("num_clients", state.get("num_clients", num_clients), 0)
        self.rule = self._make(num_clients)
        if state is not None:
            self.rule.load_state_dict(state.get("arrays", {}))
        if self.memory is not None:
            self.memory.begin(server_round, None if state is None else state["memory"])

    def state_dict(self) -> dict[str, Any]:
        """Return what the rule has learnt, and which updates it remembers."""
        state = {"num_clients": self.rule.num_clients, "arrays": self.rule.state_dict()}
        if self.memory is not None:
            state["memory"] = self.memory.state_dict()
        return state

    def grow(self, num_clients: int) -> None:
        """Let clients join until there are this many."""
        if num_clients > self.rule.num_clients:
            self.rule.join(num_clients - self.rule.num_clients)

    def move(self, answered: AnsweredCohort, counted: Sequence[int]) -> Model:
        """Return the next model.

        Args:
            answered: The round.
            counted: Positions in the cohort of the updates that count.

        Raises:
            AggregationError: If an update is too long to be remembered.
        """
        trained = []
        for position in counted:
            trained.append(answered.verdicts[position].model or {})
        arrivals = describe_arrivals(answered, counted)
        weights = self.rule.weigh(arrivals)[arrivals.valid]
        remembered = self._remembered(answered, counted, weights)
        return apply_weights(answered.model, trained, weights, self.rule.normalises, remembered)

    def learn(self, server_round: int, answered: AnsweredCohort, counted: Sequence[int]) -> None:
        """Learn from a round, also from one in which nothing counts.

        Args:
            server_round: The round, counted from 1.
            answered: The round's cohort and the verdicts on it.
            counted: Positions in the cohort of the updates that count.
        """
        self.rule.learn(describe_arrivals(answered, counted))
        if self.memory is None:
            return
        for position in counted:
            client = int(answered.cohort.clients[position])
            trained = answered.verdicts[position].model or {}
            self.memory.store(server_round, client, answered.model, trained)

    def _remembered(
        self, answered: AnsweredCohort, counted: Sequence[int], weights: Floats
    ) -> Model | None:
        """Return what remembered updates add to the model; None for rules without memory.

        A rule adds the average of y over all clients, and takes d_i - y_i instead of d_i for
        those that arrived. So y_j counts share_j, less the weight of its client's new update.
        """
        if self.memory is None:
            return None
        longest = max([answered.verdicts[position].norm for position in counted], default=0.0)
        if not longest <= LARGEST_UPDATE:
            raise AggregationError(f"an update of length {longest:g} is too long for float32")
        coefficients = data_shares(answered.declared_examples)
        arrived = answered.cohort.clients[list(counted)]
        coefficients[arrived] -= weights / sum_of_weights(weights, self.rule.normalises)
        return self.memory.combine(coefficients)

    def _make(self, num_clients: int) -> Rule:
        return make_rule(self.aggregation, Setting(num_runs=1, num_clients=num_clients))


def describe_arrivals(answered: AnsweredCohort, counted: Sequence[int]) -> Arrivals:
    """Return what a rule is told of a round; arrays have shape [1, k].

    Clients whose verdict is "unknown" are left out: that the SuperLink had trouble must not
    count as their failure.

    Args:
        answered: The round.
        counted: Positions in the cohort of the updates that count.
    """
    verdicts = answered.verdicts
    cohort = answered.cohort
    is_known = np.array([verdict.status != "unknown" for verdict in verdicts], dtype=np.bool_)
    valid = np.zeros(len(verdicts), dtype=np.bool_)
    valid[list(counted)] = True
    loss = np.array([verdict.loss for verdict in verdicts], dtype=np.float64)
    shares = data_shares(answered.declared_examples)[cohort.clients]
    return Arrivals(
        clients=cohort.clients[is_known][None],
        valid=valid[is_known][None],
        shares=shares[is_known][None],
        weights=cohort.correction[is_known][None],
        loss=np.where(valid, loss, np.nan)[is_known][None],
        norm=np.where(valid, update_norms(verdicts), np.nan)[is_known][None],
        available=_available_mask(answered),
    )


def _available_mask(answered: AnsweredCohort) -> Bools | None:
    """Return who could be asked [1, K]; None if all could, or the weights count absence."""
    if answered.available is None or answered.cohort.weights is not None:
        return None
    mask = np.zeros(len(answered.declared_examples), dtype=np.bool_)
    mask[answered.available] = True
    return mask[None]
