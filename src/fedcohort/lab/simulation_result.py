"""What comes of a simulation: sums over the rounds instead of records."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import tee

import numpy as np

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.rounds import play
from fedcohort.selection.protocol import Selector

PROGRESS_EVERY = 50  # rounds between calls of on_round


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """What came of one selector, over S seeds and T rounds.

    Attributes:
        successes: Updates that arrived [S, T].
        answering: Clients that would have answered, asked or not [S, T].
        expected: Sum of the success rates of the clients that were asked [S, T].
        counts: How often each client was asked [S, K].
        asked: Clients that were asked in each round [S, T]; None if they were k in every round.
    """

    successes: Ints
    answering: Ints
    expected: Floats
    counts: Ints
    asked: Ints | None = None

    def asked_in(self, cohort: int) -> Ints:
        """Return how many clients were asked in each round [S, T].

        Args:
            cohort: Clients asked in a round, k, unless something else was recorded.
        """
        if self.asked is not None:
            return self.asked
        return np.full(self.successes.shape, cohort)


def collect(
    selector: Selector,
    answers: Iterable[Bools],
    rates: Floats | None,
    rounds: int,
    runs: int,
    on_round: Callable[[int], None] | None = None,
    before_round: Callable[[int], None] | None = None,
    available: Iterable[Bools] | None = None,
    cohort: int | None = None,
) -> SimulationResult:
    """Play the loop and keep sums instead of records.

    Args:
        selector: The selector, with a batch axis of S runs.
        answers: Rows [S, K] of who would answer.
        rates: Success rate of each client, [K] or [S, K]. Without rates the answers themselves
            count as expected.
        rounds: Number of rounds, T.
        runs: Number of runs, S.
        on_round: Called with the rounds done, every so many rounds and after the last.
        before_round: Called with the round that is about to be played.
        available: Rows [S, K] of who is online; None if nobody knows.
        cohort: Clients asked in a round, k. Where other numbers of clients are asked, the result
            has them; without k it has not.

    Returns:
        The sums of all runs.
    """
    successes = np.zeros((runs, rounds), dtype=np.int64)
    answering = np.zeros((runs, rounds), dtype=np.int64)
    expected = np.zeros((runs, rounds))
    counts = np.zeros((runs, selector.num_clients), dtype=np.int64)
    asked = np.zeros((runs, rounds), dtype=np.int64)
    if rates is not None:
        rates = np.broadcast_to(rates, counts.shape)

    world, truth = tee(answers)
    if before_round:
        before_round(0)
    for round, (record, would_answer) in enumerate(
        zip(play(selector, world, rounds, available=available), truth, strict=False)
    ):
        is_asked = record.cohort.is_asked
        run, _ = np.nonzero(is_asked)
        client = record.cohort.clients[is_asked]
        asked[:, round] = is_asked.sum(axis=-1)
        successes[:, round] = record.arrived.sum(axis=-1)
        answering[:, round] = would_answer.sum(axis=-1)
        if rates is None:
            expected[:, round] = successes[:, round]
        else:
            own = np.zeros(is_asked.shape)
            own[is_asked] = rates[run, client]
            expected[:, round] = own.sum(axis=-1)
        counts[run, client] += 1

        done = round + 1
        if on_round and (done % PROGRESS_EVERY == 0 or done == rounds):
            on_round(done)
        if before_round and done < rounds:
            before_round(done)
    varies = cohort is not None and bool((asked != cohort).any())
    return SimulationResult(successes, answering, expected, counts, asked=asked if varies else None)
