"""The defaults of every aggregation rule: its sizes, its memory of clients, and states."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, State


@dataclass(frozen=True, eq=False)
class Setting:
    """What a rule may know before the first round; each rule takes only what it needs.

    Attributes:
        num_runs: Number of runs in lock-step that this rule serves, R.
        num_clients: Number of clients in each run, K.
        success_rates: How often each client answers [R, K]; None if it is unknown.
        learning_rate: Learning rate of the clients' SGD; None if it is unknown.
    """

    num_runs: int
    num_clients: int
    success_rates: Floats | None = None
    learning_rate: float | None = None


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What the server knows of a cohort when the round is over, for R runs.

    Attributes:
        clients: Clients that were asked [R, k]; -1 where a run asked fewer than k.
        valid: Whose update arrived and counts [R, k].
        shares: Share of each client in the training samples of all clients [R, k].
        weights: Factor of each share that makes the choice of the cohort unbiased [R, k]:
            usually the inverse of the client's inclusion probability.
        loss: Training loss that each client reported [R, k], nan where nothing counts.
        norm: Length of each update [R, k], nan where nothing counts.
        available: Who could be asked in this round [R, K]; None if everyone could, as far as
            anybody knows. Inclusion probabilities hold among those who could. Where a cohort has
            weights of its own, which count absence themselves, everyone stands as available.
    """

    clients: Ints
    valid: Bools
    shares: Floats
    weights: Floats
    loss: Floats
    norm: Floats
    available: Bools | None = None


class Rule:
    """What all rules share; a rule of its own writes `weigh` and, if it learns, `learn`.

    The model of a run moves by the sum of w_i d_i over the clients that arrived, where w_i is the
    weight and d_i the update, Theta_i - Theta. A rule that normalises divides this by the sum of
    the weights. A rule that remembers updates takes d_i - y_i instead of d_i, where y_i is the
    last update of the client before, and adds the average of y over all clients, by their shares;
    y_i is zero until a client is heard of. A run in which no update counts keeps its model.

    Args:
        setting: Sizes, and what else is known before the first round.

    Attributes:
        normalises: Whether the weights are divided by their sum.
        remembers_updates: Whether the last update of every client is remembered.
        needs_rates: Whether the rule needs the clients' true success rates.
        needs_inclusion: Whether the rule divides by inclusion probabilities, so that it needs a
            selector that knows them.
        client_arrays: Names of the arrays [R, K] that the rule learns. States contain them.

    Raises:
        ValueError: If the setting lacks something that the rule needs.

    Examples:
        >>> class EveryoneAlike(Rule):
        ...     normalises = True
        ...
        ...     def weigh(self, arrivals):
        ...         return arrivals.valid.astype(float)
        >>> EveryoneAlike(Setting(num_runs=1, num_clients=4)).num_clients
        4
    """

    normalises: ClassVar[bool] = False
    remembers_updates: ClassVar[bool] = False
    needs_rates: ClassVar[bool] = False
    needs_inclusion: ClassVar[bool] = False
    client_arrays: ClassVar[tuple[str, ...]] = ()

    def __init__(self, setting: Setting) -> None:
        self.num_runs = setting.num_runs
        self.num_clients = setting.num_clients
        if self.needs_rates and setting.success_rates is None:
            raise ValueError(f"success_rates must be given for {type(self).__name__}, got None")
        for name, values in self.initial_arrays(*self.shape).items():
            setattr(self, name, values)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape [R, K] of an array with one value per client."""
        return (self.num_runs, self.num_clients)

    def weigh(self, arrivals: Arrivals) -> Floats:
        """Return how much each update counts; every rule implements this.

        Args:
            arrivals: What is known of the round.

        Returns:
            One weight per client [R, k]. Those of updates that do not count are ignored.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement weigh")

    def learn(self, arrivals: Arrivals) -> None:
        """Learn from a round after its updates were combined; the default learns nothing.

        Args:
            arrivals: What is known of the round.
        """

    def join(self, count: int = 1) -> None:
        """Add clients at the end of every run; nothing is known of them.

        Args:
            count: Number of clients that join.

        Raises:
            ValueError: If the rule needs true success rates, which nobody knows of newcomers.
        """
        if self.needs_rates:
            raise ValueError(
                f"clients must not join {type(self).__name__}, which needs the true success rates "
                f"of all from the start, got {count} more"
            )
        self.num_clients += count
        fresh = type(self).initial_arrays
        for name in self.client_arrays:
            newcomers = fresh(self.num_runs, count)[name]
            setattr(self, name, np.concatenate([getattr(self, name), newcomers], axis=1))

    @staticmethod
    def initial_arrays(num_runs: int, num_clients: int) -> dict[str, Floats]:
        """Return the arrays [R, K] of clients of which nothing is known, by name."""
        return {}

    def state_dict(self) -> State:
        """Return copies of the arrays that the rule has learnt, by name."""
        return {name: np.copy(getattr(self, name)) for name in self.client_arrays}

    def load_state_dict(self, state: State) -> None:
        """Continue where the state was taken.

        Args:
            state: What `state_dict` of the same rule with the same sizes returned.

        Raises:
            ValueError: If an array is missing or does not fit; nothing changes then.
        """
        arrays = {}
        for name in self.client_arrays:
            arrays[name] = _read_array(name, state.get(name), self.shape)
        for name, values in arrays.items():
            setattr(self, name, values)


def _read_array(name: str, values: Any, shape: tuple[int, int]) -> npt.NDArray[Any]:
    is_numbers = isinstance(values, np.ndarray) and values.dtype.kind in "fiu"
    if not is_numbers or values.shape != shape or not np.isfinite(values).all():
        got = getattr(values, "shape", values)
        raise ValueError(f"{name} of a rule's state must be numbers of shape {shape}, got {got}")
    return np.array(values, dtype=np.float64)
