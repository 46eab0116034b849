"""THE LOOP: one deadline round after another. It knows no learning library and no network.

A *world* says who would answer in which round, or after how many seconds; it is fixed by its
seed. In each round the selector asks a cohort and the clients train. At the deadline the
server stops waiting: an update that has not arrived is late, one that arrived broken is
rejected, and both are failures. The learner aggregates the rest, and the selector is told.
A selector that asks more clients than it needs closes the round earlier, at the answer that
makes it enough. A world may also say who is offline before anybody is asked; if all are, the round
passes until its deadline.
Time is virtual: a round takes as long as the world says, not as long as it runs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.checks import check_int
from fedcohort.selection.asking import ask
from fedcohort.selection.protocol import Cohort, Outcome, Selector


@dataclass(frozen=True, eq=False)
class Returned:
    """What a learner returns for the clients of a round.

    Attributes:
        valid: Whether the update arrived and is sound, shape [..., k].
        loss: Local loss that the client reported, nan where there is none, shape [..., k];
            None if no client reports a loss.
        norm: Length of the client's update, nan where there is none, shape [..., k]; None if
            nobody measures it.
    """

    valid: Bools
    loss: Floats | None = None
    norm: Floats | None = None


class Learner(Protocol):
    """Trains clients, checks the updates that they return, and aggregates them."""

    def train(
        self,
        round: int,
        clients: Ints,
        arrived: Bools,
        weights: Floats,
        available: Bools | None = None,
    ) -> Returned:
        """Train the clients whose updates arrive and aggregate the valid updates.

        Args:
            round: The round, counted from 0.
            clients: Clients that were asked, shape [..., k].
            arrived: Whose update arrives before the deadline, shape [..., k].
            weights: Factor of each client's share that makes the choice of the cohort unbiased,
                shape [..., k]: usually the inverse of its inclusion probability.
            available: Who could be asked, shape [..., K]. It is given only where the server knows
                who is offline. Where a cohort has weights of its own, which count absence
                themselves, everyone stands as available.
        """
        ...


class NoTraining:
    """A learner for selection alone: every update that arrives is valid."""

    def train(
        self,
        round: int,
        clients: Ints,
        arrived: Bools,
        weights: Floats,
        available: Bools | None = None,
    ) -> Returned:
        """Return what arrived."""
        return Returned(arrived)


@dataclass(frozen=True, eq=False)
class Record:
    """What happened in a round.

    Attributes:
        cohort: The clients that were asked, [..., k].
        arrived: Whether the update arrived before the round closed, [..., k].
        valid: Whether it arrived and is sound, [..., k].
        loss: Local loss that the client reported, [..., k], or None.
        seconds: Duration of the round [...]: until the last answer that was waited for, or
            until the deadline if an answer was missing or nobody could be asked.
        wasted: Client-seconds spent on updates that did not count, [...].

    Examples:
        >>> from fedcohort import Random
        >>> (record,) = play(Random(3, 3, rng=0), [np.array([1.0, 9.0, 2.0])], 1, deadline=5)
        >>> record.arrived.tolist(), float(record.seconds), float(record.wasted)
        ([True, False, True], 5.0, 5.0)
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
    available: Iterable[Bools] | None = None,
) -> Iterator[Record]:
    """Play deadline rounds and yield one record per round.

    Many runs play in lock-step where the selector and the world have a batch axis.

    Args:
        selector: Chooses the cohort of every round. If it has `enough`, a round closes with so
            many answers, whether the learner finds their updates valid or not.
        world: Rows [..., K], one per round: who would answer (bool), or after how many
            seconds (float, inf for never).
        rounds: Number of rounds; a world that ends earlier ends the play.
        learner: Trains the cohorts; by default nothing is trained.
        deadline: Seconds after which an answer is late.
        start: First round to play. Rows before it are skipped: a restored selector has
            seen them.
        available: Rows [..., K], one per round: who is online before anybody is asked. The
            others cannot be asked in that round. None if nobody knows.

    Yields:
        The record of each round.

    Raises:
        ValueError: If the deadline is not above 0, a row of the world cannot be read, or the
            selector returns clients that cannot be asked.

    Examples:
        >>> from fedcohort import E3CS, bernoulli, class_rates
        >>> world = bernoulli(class_rates(100), rng=0)
        >>> records = list(play(E3CS(100, 20, rng=0), world, rounds=50))
        >>> records[-1].arrived.shape
        (20,)
    """
    if not deadline > 0:
        raise ValueError(f"deadline must be above 0, got {deadline}")
    check_int("rounds", rounds, 0)
    learner = learner or NoTraining()

    online = repeat(None) if available is None else available
    for round, row, present in zip(range(rounds), world, online, strict=False):
        if round < start:
            continue
        answers = _check_row(row, selector.num_clients)

        cohort = ask(selector, round, present, runs=answers.shape[:-1])
        is_asked = cohort.is_asked
        answers = _answers_of(cohort, answers)
        seconds, limit = _seconds_until_answer(answers, deadline)
        until_answer = np.where(is_asked, seconds, inf)
        enough = getattr(selector, "enough", None)
        closing = _closing_time(until_answer, limit, enough)
        arrived = (seconds <= closing) & is_asked
        spent = np.where(is_asked, np.minimum(seconds, closing), 0.0)
        known = _known_absence(selector, cohort, present)
        returned = learner.train(round, cohort.clients, arrived, cohort.correction, **known)
        censored = None
        if enough is not None:
            censored = is_asked & (until_answer > closing) & (closing < limit)
        outcome = Outcome(cohort, returned.valid, returned.loss, spent, returned.norm, censored)
        selector.update(outcome)

        duration = np.max(spent, axis=-1, initial=0.0)
        if limit < inf:  # a round in which nobody could be asked still passes
            duration = np.where(is_asked.any(axis=-1), duration, limit)
        wasted = np.sum(spent, axis=-1, where=~returned.valid)
        yield Record(cohort, arrived, returned.valid, returned.loss, duration, wasted)


def _check_row(row: npt.ArrayLike, num_clients: int) -> npt.NDArray[Any]:
    """Return a row of the world as an array. It may know clients that are still to join."""
    answers = np.asarray(row)
    if answers.ndim == 0 or answers.shape[-1] < num_clients:
        raise ValueError(
            f"world must have a value for all {num_clients} clients, got a row {answers.shape}"
        )
    return answers


def _known_absence(selector: Selector, cohort: Cohort, present: Bools | None) -> dict[str, Bools]:
    """Return who was available as an argument of the learner; nothing if nobody knows.

    Inclusion probabilities hold among the available. Weights of a cohort's own hold in all rounds,
    so nothing is left to correct there, and everyone counts as available.
    """
    if present is None:
        return {}
    has_own_weights = getattr(selector, "has_own_weights", cohort.weights is not None)
    return {"available": np.asarray(present) | np.asarray(has_own_weights)[..., None]}


def _answers_of(cohort: Cohort, answers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the answers of a cohort [..., k]; NOBODY answers at once and counts nowhere."""
    own = pick(answers, np.maximum(cohort.clients, 0))
    if not cohort.is_asked.all():
        own = np.where(cohort.is_asked, own, np.zeros((), dtype=own.dtype))
    return own


def _seconds_until_answer(
    answers: npt.NDArray[Any], deadline: float
) -> tuple[npt.NDArray[Any], float]:
    """Return after how many seconds each client answers, inf for never, and the deadline.

    A world that only says who answers knows no seconds: every client takes one, and so does the
    round.
    """
    if answers.dtype == np.bool_:
        if deadline < 1:
            raise ValueError(
                "deadline must be at least 1 where the world only says who answers, "
                f"each in one second, got {deadline}"
            )
        return np.where(answers, 1.0, inf), 1.0

    if answers.dtype.kind != "f":
        raise _unreadable(answers.dtype)
    if not (answers >= 0).all():
        raise _unreadable("nan or less than 0")
    if deadline == inf and np.isinf(answers).any():
        raise ValueError("deadline must be finite where a client may never answer, got inf")
    return answers, deadline


def _closing_time(seconds: npt.NDArray[Any], deadline: float, enough: int | Ints | None) -> Floats:
    """Return when each round closes, [..., 1]: at the deadline, or with enough answers.

    Whoever answers in the same moment as the last one needed is in time, too. The loop cannot
    know whether an update is valid before it is aggregated, so every answer counts here.
    """
    runs = seconds.shape[:-1]
    size = seconds.shape[-1]
    if enough is None or not size:
        return np.full((*runs, 1), deadline)
    last_needed = np.minimum(np.broadcast_to(enough, runs), size) - 1
    in_order = np.sort(seconds, axis=-1)
    needed = np.take_along_axis(in_order, last_needed[..., None], axis=-1)
    return np.asarray(np.minimum(needed, deadline))


def _unreadable(got: object) -> ValueError:
    return ValueError(
        "world must say who answers (bool), or after how many seconds (float, inf for never), "
        f"got {got}"
    )
