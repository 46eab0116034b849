"""Several selectors that play side by side, as one: their runs share the batch axis."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Ints, State
from fedcohort.selection.asking import ask
from fedcohort.selection.protocol import NOBODY, Cohort, Outcome, Selector, check_answers

COHORT_FIELDS = tuple(field.name for field in fields(Cohort))


class Lockstep:
    """Several selectors as one, so that all their runs train in one batch.

    Where one asks fewer clients than another, `NOBODY` fills its rows.

    Args:
        selectors: Selectors of the same clients, each built on a sequence of seeds.
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
        self.cohort_size = max(selector.cohort_size for selector in self.selectors)
        self._asked: list[Cohort] = []

    @property
    def enough(self) -> Ints | None:
        """Number of answers at which each run's round closes [R]; None if all runs wait."""
        limits = [getattr(selector, "enough", None) for selector in self.selectors]
        if all(limit is None for limit in limits):
            return None
        everyone = self.num_clients
        return np.repeat([everyone if limit is None else limit for limit in limits], self.runs)

    @property
    def has_own_weights(self) -> Bools:
        """Which runs' cohorts in flight have weights beside their inclusion probabilities [R]."""
        return np.repeat([cohort.weights is not None for cohort in self._asked], self.runs)

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
        for selector, part, count in zip(self.selectors, parts, self.runs, strict=True):
            self._asked.append(ask(selector, round, part, runs=(count,)))

        clients = _join([cohort.clients for cohort in self._asked], fill=NOBODY)
        inclusion = _join([cohort.inclusion for cohort in self._asked], fill=0.0)
        weights = None
        if any(cohort.weights is not None for cohort in self._asked):
            weights = _join([cohort.correction for cohort in self._asked], fill=0.0)
        return Cohort(round, clients, inclusion, weights)

    def update(self, outcome: Outcome) -> None:
        """Tell every selector the outcome of its own runs.

        Args:
            outcome: The outcome of the cohorts of all runs.

        Raises:
            ValueError: If the outcome is not for the cohort asked last; no selector learns then.
        """
        self._check_outcome(outcome)
        reports: dict[str, list[Any]] = {}
        for name in ("success", "loss", "seconds", "norm", "censored"):
            reports[name] = self._split_asked(getattr(outcome, name))

        for index, selector in enumerate(self.selectors):
            own = {name: parts[index] for name, parts in reports.items()}
            selector.update(Outcome(self._asked[index], **own))
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
                cohorts.append(Cohort(**{name: asked.get(name) for name in COHORT_FIELDS}))
        self._asked = cohorts

    def _check_outcome(self, outcome: Outcome) -> None:
        round = outcome.cohort.round
        if not self._asked:
            check_answers(None, outcome.cohort)
        parts = self._split_asked(outcome.cohort.clients)
        for asked, clients in zip(self._asked, parts, strict=True):
            check_answers(asked, Cohort(round, clients, np.ones(clients.shape)))

    def _split_available(self, available: npt.ArrayLike | None) -> list[Any]:
        """Return one `available` per selector. Only a mask with a row per run is split."""
        if available is None or np.ndim(available) <= 1:
            return [available] * len(self.selectors)
        return self._split(np.asarray(available))

    def _split_asked(self, values: npt.NDArray[Any] | None) -> list[Any]:
        """Return the values [R, k] of each selector's runs, without those of NOBODY."""
        if values is None:
            return [None] * len(self.selectors)
        parts = self._split(values)
        sizes = [cohort.clients.shape[-1] for cohort in self._asked]
        return [part[..., :size] for part, size in zip(parts, sizes, strict=True)]

    def _split(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the rows of each selector's runs."""
        borders = np.cumsum(self.runs)[:-1].tolist()
        return np.split(values, borders)


def _join(rows: list[npt.NDArray[Any]], fill: float) -> npt.NDArray[Any]:
    """Return the rows [r, k] of all selectors as one array, filled up to the longest."""
    width = max(part.shape[-1] for part in rows)
    padded = []
    for part in rows:
        missing = width - part.shape[-1]
        padded.append(np.pad(part, ((0, 0), (0, missing)), constant_values=fill))
    return np.concatenate(padded)
