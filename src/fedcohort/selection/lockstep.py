"""Several selectors that play side by side, as one: their runs share the batch axis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import State
from fedcohort.selection.protocol import Cohort, Outcome, Selector, check_answers


class Lockstep:
    """Several selectors as one, so that all their runs train in one batch.

    Args:
        selectors: Selectors of the same sizes, each built on a sequence of seeds.
        runs: Number of runs of each selector.

    Examples:
        >>> from fedcohort import E3CS, Random
        >>> selector = Lockstep([E3CS(100, 20, rng=[0, 1]), Random(100, 20, rng=[0])], [2, 1])
        >>> selector.select(0).clients.shape
        (3, 20)
    """

    def __init__(self, selectors: Sequence[Selector], runs: Sequence[int]) -> None:
        self.selectors = list(selectors)
        self.runs = list(runs)
        self.num_clients = self.selectors[0].num_clients
        self.cohort_size = self.selectors[0].cohort_size
        self._asked: list[Cohort] = []

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        """Ask every selector for the cohorts of its runs.

        Args:
            round: The round, counted from 0.
            available: Who may be asked: a mask [K] or [R, K], or client ids; None for all.

        Returns:
            The cohorts of all R runs, with clients of shape [R, k].
        """
        parts = self._split_available(available)
        self._asked = []
        for selector, part in zip(self.selectors, parts, strict=True):
            self._asked.append(selector.select(round, part))

        clients = np.concatenate([cohort.clients for cohort in self._asked])
        inclusion = np.concatenate([cohort.inclusion for cohort in self._asked])
        return Cohort(round, clients, inclusion)

    def update(self, outcome: Outcome) -> None:
        """Tell every selector the outcome of its own runs.

        Args:
            outcome: The outcome of the cohorts of all runs.

        Raises:
            ValueError: If the outcome is not for the cohort asked last; no selector learns then.
        """
        self._check_outcome(outcome)
        success = self._split(outcome.success)
        loss: list[Any] = [None] * len(self.selectors)
        if outcome.loss is not None:
            loss = self._split(outcome.loss)

        for index, selector in enumerate(self.selectors):
            selector.update(Outcome(self._asked[index], success[index], loss[index]))
        self._asked = []

    def join(self, count: int = 1) -> None:
        """Add clients to every selector and forget the cohort in flight.

        Args:
            count: Number of clients that join.
        """
        for selector in self.selectors:
            selector.join(count)
        self.num_clients += count
        self._asked = []

    def state_dict(self) -> State:
        """Return the states of all selectors, by their position."""
        states = {}
        for index, selector in enumerate(self.selectors):
            states[str(index)] = selector.state_dict()
        return states

    def load_state_dict(self, state: State) -> None:
        """Restore every selector.

        Raises:
            ValueError: If the state is of other selectors or of another number of them;
                nothing changes then.
        """
        names = {str(index) for index in range(len(self.selectors))}
        found = set(state) if isinstance(state, Mapping) else set()
        if len(found) != len(names):
            raise ValueError(f"state must hold {len(names)} selectors, got {len(found)}")
        if found != names:
            raise ValueError(f"state must hold selectors {sorted(names)}, got {sorted(found)}")
        before = self.state_dict()
        try:
            self._load(state)
        except (ValueError, KeyError, TypeError):
            self._load(before)
            raise

    def _load(self, state: State) -> None:
        cohorts = []
        for index, selector in enumerate(self.selectors):
            own_state = state[str(index)]
            selector.load_state_dict(own_state)
            asked = own_state.get("asked")
            if asked is not None:
                cohorts.append(Cohort(asked["round"], asked["clients"], asked["inclusion"]))
        self._asked = cohorts

    def _check_outcome(self, outcome: Outcome) -> None:
        round = outcome.cohort.round
        if not self._asked:
            check_answers(None, outcome.cohort)
        parts = self._split(outcome.cohort.clients)
        for asked, clients in zip(self._asked, parts, strict=True):
            check_answers(asked, Cohort(round, clients, np.ones(clients.shape)))

    def _split_available(self, available: npt.ArrayLike | None) -> list[Any]:
        """Return one `available` per selector. Only a mask with a row per run is split."""
        if available is None or np.ndim(available) <= 1:
            return [available] * len(self.selectors)
        return self._split(np.asarray(available))

    def _split(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the rows of each selector's runs."""
        borders = np.cumsum(self.runs)[:-1].tolist()
        return np.split(values, borders)
