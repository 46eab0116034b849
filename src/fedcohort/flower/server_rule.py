"""An aggregation rule of fedcohort on Flower: it weighs the updates of a round and learns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.aggregation.base import Arrivals, Rule, Setting
from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.checks import check_choice, check_int
from fedcohort.flower.aggregation import apply_weights, data_shares
from fedcohort.flower.cohorts import AnsweredCohort, update_norms
from fedcohort.flower.models import Model


def check_aggregation(aggregation: str, folder: str | Path | None) -> None:
    """Check that Flower can give an aggregation all that it needs.

    Raises:
        ValueError: If the name is unknown, or the rule needs what a server does not know.
    """
    check_choice("aggregation", aggregation, ["wrapped", *AGGREGATIONS])
    if aggregation == "wrapped":
        return
    try:
        rule = AGGREGATIONS[aggregation](Setting(num_runs=1, num_clients=1))
    except ValueError as error:
        raise ValueError(
            f"aggregation must not need what a Flower server does not know, "
            f"got {aggregation!r}: {error}"
        ) from None
    if rule.remembers_updates:
        raise ValueError(
            f"aggregation must not need the last update of every client on Flower, "
            f"got {aggregation!r}"
        )


class ServerRule:
    """The rule of one run, and what it has learnt.

    Args:
        aggregation: A name of `AGGREGATIONS` that `check_aggregation` accepts.
    """

    def __init__(self, aggregation: str) -> None:
        self.aggregation = aggregation
        self.rule = self._make(0)

    def begin(self, num_clients: int, state: dict[str, Any] | None) -> None:
        """Begin with clients of which nothing is known, or where a state was taken.

        Args:
            num_clients: Number of clients of a new run.
            state: What `state_dict` returned; None for a new run. It may be empty for rules that
                learn nothing: older checkpoints do not have it.

        Raises:
            ValueError: If the state is not one of this rule.
        """
        if state is not None:
            num_clients = check_int("num_clients", state.get("num_clients", num_clients), 0)
        self.rule = self._make(num_clients)
        if state is not None:
            self.rule.load_state_dict(state.get("arrays", {}))

    def state_dict(self) -> dict[str, Any]:
        """Return what the rule has learnt."""
        return {"num_clients": self.rule.num_clients, "arrays": self.rule.state_dict()}

    def grow(self, num_clients: int) -> None:
        """Let clients join until there are this many."""
        if num_clients > self.rule.num_clients:
            self.rule.join(num_clients - self.rule.num_clients)

    def move(self, answered: AnsweredCohort, counted: Sequence[int]) -> Model:
        """Return the next model.

        Args:
            answered: The round.
            counted: Positions in the cohort of the updates that count.
        """
        trained = []
        for position in counted:
            trained.append(answered.verdicts[position].model or {})
        arrivals = describe_arrivals(answered, counted)
        weights = self.rule.weigh(arrivals)[arrivals.valid]
        return apply_weights(answered.model, trained, weights, self.rule.normalises)

    def learn(self, answered: AnsweredCohort, counted: Sequence[int]) -> None:
        """Learn from a round, also from one in which nothing counts."""
        self.rule.learn(describe_arrivals(answered, counted))

    def _make(self, num_clients: int) -> Rule:
        return AGGREGATIONS[self.aggregation](Setting(num_runs=1, num_clients=num_clients))


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
    )
