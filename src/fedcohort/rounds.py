"""THE LOOP: one deadline round after another. It knows no learning library and no network.

Select, distribute, train; at the deadline stop: what has not arrived is late, what arrived broken is rejected, and both are
failures. Aggregate what is left, tell the selector. Time is virtual: a world may say how long each client would take.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.checks import check_int
from fedcohort.selection.protocol import Cohort, Outcome, Selector, answer_to


@dataclass(frozen=True, eq=False)
class Returned:
    """What a learner made of the updates that arrived: valid [..., k], and the reported loss, nan where there is none."""

    valid: Bools
    loss: Floats | None = None


class Learner(Protocol):
    """Trains the clients [..., k] that will arrive, checks what they return and aggregates it."""

    def train(self, round: int, clients: Ints, arrived: Bools) -> Returned: ...


class NoTraining:
    """Every update that arrives is valid: selection alone."""

    def train(self, round: int, clients: Ints, arrived: Bools) -> Returned:
        """Return what arrived."""
        return Returned(arrived)


@dataclass(frozen=True, eq=False)
class Record:
    """What came of a round.

    arrived: [..., k] before the deadline; valid: [..., k] arrived and sound; loss: [..., k] as reported, or None;
    seconds: [...] until the round closed: the last answer, or the deadline if one was missing;
    wasted:  [...] client-seconds of those asked whose update did not count.
    """

    cohort: Cohort
    arrived: Bools
    valid: Bools
    loss: Floats | None
    seconds: Floats
    wasted: Floats


def play(
    selector: Selector,
    world: Iterable[npt.NDArray[Any]],
    rounds: int,
    learner: Learner | None = None,
    *,
    deadline: float = inf,
    start: int = 0,
) -> Iterator[Record]:
    """Yield one record per round; many runs in lock-step where the selector and the world have a batch axis.

    The world's rows [..., K] say who would answer (bool), or after how many seconds (float, inf for never). `start` is the
    first round to play: the rows before it, which a restored selector has seen, are skipped.
    """
    learner = learner or NoTraining()
    if not deadline > 0:
        raise ValueError(f"deadline must be above 0, got {deadline}")
    for round, row in zip(range(check_int("rounds", rounds, 0)), world, strict=False):
        if round < start:
            continue
        answers = np.asarray(row)
        if answers.ndim == 0 or answers.shape[-1] < selector.num_clients:
            raise ValueError(
                f"world must say something of all {selector.num_clients} clients, got a row {answers.shape}"
            )
        cohort = selector.select(round)
        arrived, spent = _by_deadline(pick(answers, cohort.clients), deadline)
        returned = learner.train(round, cohort.clients, arrived)
        selector.update(Outcome(cohort, returned.valid, returned.loss))
        seconds = np.max(spent, axis=-1, initial=0.0)
        wasted = np.sum(spent, axis=-1, where=~returned.valid)
        yield Record(cohort, arrived, returned.valid, returned.loss, seconds, wasted)


def _by_deadline(answers: npt.NDArray[Any], deadline: float) -> tuple[Bools, Floats]:
    """Return who arrived and the seconds each spent; where the world only says who answers, everyone takes one."""
    if answers.dtype == np.bool_:
        if deadline < 1:
            raise ValueError(
                f"deadline must be at least 1 where the world only says who answers, each in one second, got {deadline}"
            )
        return answers, np.ones(answers.shape)
    if answers.dtype.kind != "f" or not (answers >= 0).all():
        got = "nan or less than 0" if answers.dtype.kind == "f" else answers.dtype
        raise ValueError(
            f"world must say who answers (bool), or after how many seconds (float, inf for never), got {got}"
        )
    if deadline == inf and np.isinf(answers).any():
        raise ValueError("deadline must be finite where a client may never answer, got inf")
    return answers <= deadline, np.minimum(answers, deadline)


class Lockstep:
    """Several selectors side by side, as one: their runs are concatenated along the batch axis."""

    def __init__(self, selectors: list[Selector], runs: list[int]) -> None:
        self.selectors, self.runs = selectors, runs
        self.num_clients, self.cohort_size = selectors[0].num_clients, selectors[0].cohort_size
        self._asked: list[Cohort] = []

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        """Ask every selector for its runs' cohorts [R, k]."""
        given = None if available is None else np.asarray(available)
        per_run = given is not None and given.ndim > 1
        parts = (
            np.split(given, self._borders)
            if given is not None and per_run
            else [given] * len(self.selectors)
        )
        self._asked = [
            selector.select(round, part)
            for selector, part in zip(self.selectors, parts, strict=True)
        ]
        clients = np.concatenate([cohort.clients for cohort in self._asked])
        return Cohort(round, clients, np.concatenate([cohort.inclusion for cohort in self._asked]))

    def update(self, outcome: Outcome) -> None:
        """Tell every selector about its own runs."""
        told = np.split(outcome.cohort.clients, self._borders)
        if not self._asked:
            raise ValueError(
                f"update needs a cohort from select first, got an outcome for round {outcome.cohort.round}"
            )
        for asked, clients in zip(self._asked, told, strict=True):
            answer_to(
                asked,
                Outcome(
                    Cohort(outcome.cohort.round, clients, np.ones(clients.shape)),
                    np.zeros(clients.shape),
                ),
            )
        success = np.split(outcome.success, self._borders)
        loss = (
            [None] * len(self.selectors)
            if outcome.loss is None
            else np.split(outcome.loss, self._borders)
        )
        for selector, cohort, arrived, reported in zip(
            self.selectors, self._asked, success, loss, strict=True
        ):
            selector.update(Outcome(cohort, arrived, reported))
        self._asked = []

    def join(self, count: int = 1) -> None:
        """Add clients to every selector; what was asked is forgotten, as they forget it."""
        for selector in self.selectors:
            selector.join(count)
        self.num_clients += count
        self._asked = []

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all selectors, by place."""
        return {str(place): selector.state_dict() for place, selector in enumerate(self.selectors)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore every selector; a state of other selectors, or of another number of them, is refused and changes nothing."""
        if len(state) != len(self.selectors):
            raise ValueError(f"state must hold {len(self.selectors)} selectors, got {len(state)}")
        before = self.state_dict()
        try:
            self._load(state)
        except (ValueError, KeyError, TypeError):
            self._load(before)
            raise

    def _load(self, state: dict[str, Any]) -> None:
        asked = []
        for place, selector in enumerate(self.selectors):
            selector.load_state_dict(state[str(place)])
            if (own := state[str(place)].get("asked")) is not None:
                asked.append(Cohort(own["round"], own["clients"], own["inclusion"]))
        self._asked = asked

    @property
    def _borders(self) -> list[int]:
        return [int(border) for border in np.cumsum(self.runs)[:-1]]
