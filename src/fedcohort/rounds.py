"""THE LOOP: one deadline round after another. It knows no learning library and no network.

A *world* says who would answer in which round, or after how many seconds; it is fixed by its
seed. In each round the selector asks a cohort and the clients train. At the deadline the
server stops waiting: an update that has not arrived is late, one that arrived broken is
rejected, and both are failures. The learner aggregates the rest, and the selector is told.
Time is virtual: a round takes as long as the world says, not as long as it runs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.checks import check_int
from fedcohort.selection.protocol import Cohort, Outcome, Selector


@dataclass(frozen=True, eq=False)
class Returned:
    """What a learner returns for the clients of a round.

    Attributes:
        valid: Whether the update arrived and is sound, shape [..., k].
        loss: Local loss that the client reported, nan where there is none, shape [..., k];
            None if no client reports a loss.
    """

    valid: Bools
    loss: Floats | None = None


class Learner(Protocol):
    """Trains clients, checks the updates that they return, and aggregates them."""

    def train(self, round: int, clients: Ints, arrived: Bools) -> Returned:
        """Train the clients whose updates arrive and aggregate the valid updates.

        Args:
            round: The round, counted from 0.
            clients: Clients that were asked, shape [..., k].
            arrived: Whose update arrives before the deadline, shape [..., k].
        """
        ...


class NoTraining:
    """A learner for selection alone: every update that arrives is valid."""

    def train(self, round: int, clients: Ints, arrived: Bools) -> Returned:
        """Return what arrived."""
        return Returned(arrived)


@dataclass(frozen=True, eq=False)
class Record:
    """What happened in a round.

    Attributes:
        cohort: The clients that were asked, [..., k].
        arrived: Whether the update arrived before the deadline, [..., k].
        valid: Whether it arrived and is sound, [..., k].
        loss: Local loss that the client reported, [..., k], or None.
        seconds: Duration of the round [...]: until the last answer, or until the deadline if
            an answer was missing.
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
) -> Iterator[Record]:
    """Play deadline rounds and yield one record per round.

    Many runs play in lock-step where the selector and the world have a batch axis.

    Args:
        selector: Chooses the cohort of every round.
        world: Rows [..., K], one per round: who would answer (bool), or after how many
            seconds (float, inf for never).
        rounds: Number of rounds; a world that ends earlier ends the play.
        learner: Trains the cohorts; by default nothing is trained.
        deadline: Seconds after which an answer is late.
        start: First round to play. Rows before it are skipped: a restored selector has
            seen them.

    Yields:
        The record of each round.

    Raises:
        ValueError: If the deadline is not above 0 or a row of the world cannot be read.

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

    for round, row in zip(range(rounds), world, strict=False):
        if round < start:
            continue
        answers = _check_row(row, selector.num_clients)

        cohort = selector.select(round)
        arrived, spent = _stop_at_deadline(pick(answers, cohort.clients), deadline)
        returned = learner.train(round, cohort.clients, arrived)
        selector.update(Outcome(cohort, returned.valid, returned.loss))

        seconds = np.max(spent, axis=-1, initial=0.0)
        wasted = np.sum(spent, axis=-1, where=~returned.valid)
        yield Record(cohort, arrived, returned.valid, returned.loss, seconds, wasted)


def _check_row(row: npt.ArrayLike, num_clients: int) -> npt.NDArray[Any]:
    """Return a row of the world as an array. It may know clients that are still to join."""
    answers = np.asarray(row)
    if answers.ndim == 0 or answers.shape[-1] < num_clients:
        raise ValueError(
            f"world must have a value for all {num_clients} clients, got a row {answers.shape}"
        )
    return answers


def _stop_at_deadline(answers: npt.NDArray[Any], deadline: float) -> tuple[Bools, Floats]:
    """Return who arrived and how many seconds each client spent.

    A world that only says who answers knows no seconds: every client takes one.
    """
    if answers.dtype == np.bool_:
        if deadline < 1:
            raise ValueError(
                "deadline must be at least 1 where the world only says who answers, "
                f"each in one second, got {deadline}"
            )
        return answers, np.ones(answers.shape)

    if answers.dtype.kind != "f":
        raise _unreadable(answers.dtype)
    if not (answers >= 0).all():
        raise _unreadable("nan or less than 0")
    if deadline == inf and np.isinf(answers).any():
        raise ValueError("deadline must be finite where a client may never answer, got inf")
    return answers <= deadline, np.minimum(answers, deadline)


def _unreadable(got: object) -> ValueError:
    return ValueError(
        "world must say who answers (bool), or after how many seconds (float, inf for never), "
        f"got {got}"
    )
