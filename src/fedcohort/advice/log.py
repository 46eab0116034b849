"""A federation log: who was asked in which round, who answered, and when.

All readers make this one object, and everything that advises reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedcohort.advice.estimates import sum_by
from fedcohort.advice.log_parts import replace_zero_times, sort_names
from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.early_stop import stop_margin

ARRIVED = "arrived"
LATE_ANSWER = "late"  # an answer that came after its round had closed with enough others
MOST_CLIENTS = 2000  # in tables [T, K]; of more, those that were asked most often


@dataclass(frozen=True, eq=False)
class FederationLog:
    """What a federation recorded over T rounds: n questions to K clients.

    Attributes:
        source: Where it was read, in a few words.
        clients: Name of each client, K in all.
        rounds: Number of each round as it was recorded, ascending [T].
        round: Position of the round of each question, from 0, ascending [n].
        client: Client of each question, from 0 [n].
        arrived: Whether the answer arrived and counted [n].
        seconds: Seconds until an answer that arrived; nan if unknown or if none did [n].
        late: 1 if a failure was only too slow, 0 if the client would never have answered, nan if
            unknown [n].
        inclusion: Probability with which the client was asked; nan if unknown [n].
        status: What became of each question, in one word [n].
        round_seconds: How long each round took; nan if unknown [T].
        cohort: Clients asked in a round, the median over rounds.
        deadline: Seconds after which the server stopped waiting, the median over rounds if they
            differ; None if unknown.
        selector: Name of the selector that chose; None if unknown.
        available: Who could have been asked [T, K]; None if unknown.
        notes: What was repaired or left out when the log was read, one sentence each.
        deadlines: The deadline of each round where rounds differ in it, infinite where there was
            none [T]; None if all have the same.
        rejections: Why the server rejected updates, by client, in the words of the journal.
        grace: Seconds before the deadline at which clients stop, at most a fifth of it; 0 if they
            work until the deadline.
    """

    source: str
    clients: tuple[str, ...]
    rounds: Ints
    round: Ints
    client: Ints
    arrived: Bools
    seconds: Floats
    late: Floats
    inclusion: Floats
    status: npt.NDArray[np.str_]
    round_seconds: Floats
    cohort: int
    deadline: float | None = None
    selector: str | None = None
    available: Bools | None = None
    notes: tuple[str, ...] = ()
    deadlines: Floats | None = None
    rejections: Mapping[str, str] = field(default_factory=dict)
    grace: float = 0.0

    @property
    def num_clients(self) -> int:
        """Number of clients, K."""
        return len(self.clients)

    @property
    def num_rounds(self) -> int:
        """Number of rounds, T."""
        return len(self.rounds)

    @cached_property
    def asked_in_round(self) -> Floats:
        """How many clients were asked in each round [T]."""
        return np.bincount(self.round, minlength=self.num_rounds).astype(np.float64)

    @cached_property
    def arrived_in_round(self) -> Floats:
        """How many answers counted in each round [T]."""
        return sum_by(self.round, self.arrived, self.num_rounds)

    @cached_property
    def asked_of_client(self) -> Floats:
        """How often each client was asked [K]."""
        return np.bincount(self.client, minlength=self.num_clients).astype(np.float64)

    @cached_property
    def arrived_of_client(self) -> Floats:
        """How many answers of each client counted [K]."""
        return sum_by(self.client, self.arrived, self.num_clients)

    @cached_property
    def deadline_in_round(self) -> Floats:
        """Seconds after which the server stopped waiting in each round, infinite if never [T]."""
        if self.deadlines is not None:
            return self.deadlines
        return np.full(self.num_rounds, np.inf if self.deadline is None else self.deadline)

    @cached_property
    def limit_in_round(self) -> Floats:
        """Seconds after which clients stopped in each round, infinite if never [T]."""
        return self.deadline_in_round - stop_margin(self.deadline_in_round, self.grace)

    @property
    def longest_deadline(self) -> float | None:
        """The longest of the deadlines that are known; None if there is none."""
        known = self.deadline_in_round[np.isfinite(self.deadline_in_round)]
        return float(known.max()) if known.size else None

    def tables(self, most: int = MOST_CLIENTS) -> tuple[Bools, Bools, Ints]:
        """Return who was asked [T, C] and who answered [T, C], and which clients C are.

        Args:
            most: The most clients in the tables; those that were asked most often are kept.
        """
        order = np.argsort(-self.asked_of_client, kind="stable")[:most]
        chosen = np.sort(order)
        column = np.full(self.num_clients, -1)
        column[chosen] = np.arange(len(chosen))
        kept = column[self.client] >= 0
        asked = np.zeros((self.num_rounds, len(chosen)), dtype=np.bool_)
        arrived = np.zeros_like(asked)
        places = (self.round[kept], column[self.client[kept]])
        asked[places] = True
        arrived[places] = self.arrived[kept]
        return asked, arrived, chosen

    def since(self, first: int) -> "FederationLog":
        """Return the log from a position on; the clients stay the same.

        Args:
            first: First round that stays, counted from 0.
        """
        kept = self.round >= first
        round = self.round[kept] - first
        available = None if self.available is None else self.available[first:]
        deadlines = None if self.deadlines is None else self.deadlines[first:]
        return replace(
            self,
            rounds=self.rounds[first:],
            round=round,
            client=self.client[kept],
            arrived=self.arrived[kept],
            seconds=self.seconds[kept],
            late=self.late[kept],
            inclusion=self.inclusion[kept],
            status=self.status[kept],
            round_seconds=self.round_seconds[first:],
            cohort=_typical_cohort(round),
            available=available,
            deadline=_median(deadlines) if deadlines is not None else self.deadline,
            deadlines=deadlines,
        )


@dataclass
class Question:
    """One line of a log while it is read: one client that was asked in one round."""

    round: int
    client: str
    arrived: bool
    seconds: float = np.nan
    late: float = np.nan
    inclusion: float = np.nan
    status: str = ""


def make_log(
    source: str,
    questions: list[Question],
    *,
    names: tuple[str, ...] = (),
    round_seconds: dict[int, float] | None = None,
    deadline: float | None = None,
    selector: str | None = None,
    available: dict[int, set[str]] | None = None,
    notes: tuple[str, ...] = (),
    deadlines: dict[int, float] | None = None,
    grace: float = 0.0,
) -> FederationLog:
    """Return a log from its questions.

    Args:
        source: Where it was read.
        questions: One for each client that was asked in a round, in any order.
        names: Clients that may never have been asked.
        round_seconds: How long rounds took, by their numbers.
        deadline: Seconds after which the server stopped waiting.
        selector: Name of the selector that chose.
        available: Who could have been asked in each round, by its number.
        notes: What was repaired or left out.
        deadlines: The deadline of each round by its number, where rounds differ in it.
        grace: Seconds before the deadline at which clients stop.

    Raises:
        ValueError: If nobody was asked.
    """
    if not questions:
        raise ValueError(f"{source} must hold at least one round with a client, got none")
    lengths = round_seconds or {}
    rounds = sorted({question.round for question in questions} | set(lengths))
    clients = sort_names({*names, *(question.client for question in questions)})
    position_of_round = {round: position for position, round in enumerate(rounds)}
    position_of_client = {name: position for position, name in enumerate(clients)}
    ordered = sorted(
        questions,
        key=lambda question: (question.round, position_of_client[question.client]),
    )
    limits = None
    if deadlines is not None:
        limits = np.array([deadlines.get(round, np.inf) for round in rounds])
        deadline = _median(limits)
    positions = np.array([position_of_round[question.round] for question in ordered])
    seconds = np.array([question.seconds for question in ordered], dtype=np.float64)
    seconds, zero_note = replace_zero_times(seconds)
    return FederationLog(
        source=source,
        clients=clients,
        rounds=np.array(rounds),
        round=positions,
        client=np.array([position_of_client[question.client] for question in ordered]),
        arrived=np.array([question.arrived for question in ordered], dtype=np.bool_),
        seconds=seconds,
        late=np.array([question.late for question in ordered], dtype=np.float64),
        inclusion=np.array([question.inclusion for question in ordered], dtype=np.float64),
        status=np.array([question.status for question in ordered]),
        round_seconds=np.array([lengths.get(round, np.nan) for round in rounds]),
        cohort=_typical_cohort(positions),
        deadline=deadline,
        selector=selector,
        available=_availability(available, rounds, position_of_client),
        notes=(*notes, *zero_note),
        deadlines=limits,
        grace=grace,
    )


def _typical_cohort(round: Ints) -> int:
    """Return the median number of questions in rounds that have any, at least 1.

    Args:
        round: Position of the round of each question [n].
    """
    if not round.size:
        return 1
    _, asked = np.unique(round, return_counts=True)
    return max(1, int(np.median(asked)))


def _median(deadlines: Floats) -> float | None:
    """Return the median of the deadlines that are known; None if none is."""
    known = deadlines[np.isfinite(deadlines)]
    return float(np.median(known)) if known.size else None


def _availability(
    available: dict[int, set[str]] | None, rounds: list[int], clients: dict[str, int]
) -> Bools | None:
    if available is None:
        return None
    table = np.ones((len(rounds), len(clients)), dtype=np.bool_)
    for position, round in enumerate(rounds):
        if round in available:
            table[position] = False
            present = [clients[name] for name in available[round] if name in clients]
            table[position, present] = True
    return table
