"""THE LOOP: one deadline round after another. It knows no model and no network."""

from collections.abc import Iterator
from dataclasses import dataclass

from fedcohort.arrays import Bools, pick
from fedcohort.selection.protocol import Cohort, Outcome, Selector


@dataclass(frozen=True, eq=False)
class Record:
    """What came of a round: who was asked and whose update arrived, [..., k]."""

    cohort: Cohort
    arrived: Bools


def play(selector: Selector, answers: Iterator[Bools], rounds: int) -> Iterator[Record]:
    """Yield one record per round; many runs in lock-step where the selector and the world have a batch axis."""
    for round, would_answer in zip(range(rounds), answers, strict=False):
        cohort = selector.select(round)
        arrived = pick(would_answer, cohort.clients)
        selector.update(Outcome(cohort, arrived))
        yield Record(cohort, arrived)
