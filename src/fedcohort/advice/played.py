"""Logs of federations that are described instead of recorded: a world, played for a while.

The server asks uniformly, so that the log says as much about every client.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.advice.log import ARRIVED, FederationLog, Question, make_log
from fedcohort.arrays import Bools, Floats
from fedcohort.checks import check_int, check_positive, check_range
from fedcohort.lab.config import open_world
from fedcohort.lab.simulation import load_simulation
from fedcohort.memory import check_memory
from fedcohort.rounds import play
from fedcohort.selection.random import Random
from fedcohort.world.durations import timed
from fedcohort.world.intervals import read_intervals, resample
from fedcohort.world.registry import Conditions, make_world

ROUNDS = 1000  # of a federation that flags describe
BYTES_PER_QUESTION = 400
BYTES_PER_CLIENT = 3000  # draws of its rate, and its answers in the worlds


@dataclass(frozen=True)
class Description:
    """A federation in a few numbers, as flags give them.

    Attributes:
        clients: Number of clients, K.
        cohort: Clients asked per round, k.
        rates: How often each class of clients answers at all.
        deadline: Seconds after which the server stops waiting; None if times are unknown.
        seconds: Median seconds until an answer; None if times are unknown.
        spread: Standard deviation of the logarithm of these seconds.
        off: Mean rounds for which a client that fails stays away; 1 if failures do not last.
        rounds: Rounds to play.
        seed: Seed of the world.

    Raises:
        ValueError: If a number is out of bounds.
    """

    clients: int
    cohort: int
    rates: tuple[float, ...]
    deadline: float | None = None
    seconds: float | None = None
    spread: float = 0.5
    off: float = 1.0
    rounds: int = ROUNDS
    seed: int = 0

    def __post_init__(self) -> None:
        check_int("clients", self.clients, 1)
        check_memory("clients", f"{self.clients} clients", needed=self.clients * BYTES_PER_CLIENT)
        check_int("cohort", self.cohort, 1, self.clients)
        check_int("rounds", self.rounds, 1)
        check_range("spread", self.spread, 0.0, 10.0)
        check_range("off", self.off, 1.0, 1e6)
        if self.deadline is not None:
            check_positive("deadline", self.deadline)
        if self.seconds is not None:
            check_positive("seconds", self.seconds)
            if self.deadline is None:
                raise ValueError(f"deadline must be given with seconds={self.seconds:g}, got None")


def play_description(description: Description) -> FederationLog:
    """Return the log of a described federation.

    Args:
        description: The federation.
    """
    name = "bernoulli"
    options = {}
    if description.off > 1:
        name = "markov"
        options = {"off": description.off}
    conditions = Conditions(
        description.clients, [description.seed], rates=description.rates, options=options
    )
    rows: Iterator[npt.NDArray[Any]] = make_world(name, conditions).rows
    if description.seconds is not None:
        rows = timed(
            rows,
            np.full(description.clients, description.seconds),
            [description.seed],
            description.spread,
        )
    note = f"The federation was described, not recorded: {description.rounds} rounds were played."
    return play_rows(
        "the federation as described",
        rows,
        num_clients=description.clients,
        cohort=description.cohort,
        rounds=description.rounds,
        deadline=description.deadline,
        seed=description.seed,
        notes=(note,),
    )


def play_trace(
    path: Path, cohort: int | None, round_seconds: float, seed: int = 0
) -> FederationLog:
    """Return the log of an availability trace `client,on,off`.

    Args:
        path: The trace.
        cohort: Clients asked per round; by default a fifth of all.
        round_seconds: Length of a round.
        seed: Seed of the selection.
    """
    intervals = read_intervals(path)
    clients = int(intervals.client.max()) + 1
    online, stays = resample(intervals, clients, round_seconds)
    size = cohort or max(1, clients // 5)
    note = (
        f"A trace has no rounds: uniform selection of {size} clients was played on it, in rounds "
        f"of {round_seconds:g} s."
    )
    return play_rows(
        str(path),
        iter((online & stays)[:, None, :]),
        num_clients=clients,
        cohort=check_int("cohort", size, 1, clients),
        rounds=len(online),
        deadline=None,
        seed=seed,
        notes=(note,),
    )


def play_simulation(folder: Path) -> FederationLog:
    """Return a log of the world that a folder of `simulate` was played in.

    Args:
        folder: The run folder. It holds sums, not rounds, so its world is played again.
    """
    config = load_simulation(folder).config
    world = open_world(config, [config.first_seed])
    note = "A simulation keeps no rounds: uniform selection was played in its world again."
    return play_rows(
        str(folder),
        world.rows,
        num_clients=config.clients,
        cohort=config.cohort,
        rounds=config.rounds,
        deadline=None,
        seed=config.first_seed,
        notes=(note,),
        available=world.available,
    )


def play_rows(
    source: str,
    rows: Iterator[npt.NDArray[Any]],
    *,
    num_clients: int,
    cohort: int,
    rounds: int,
    deadline: float | None,
    seed: int,
    notes: tuple[str, ...] = (),
    available: Iterator[Bools] | None = None,
) -> FederationLog:
    """Return the log of uniform selection in a world.

    Args:
        source: What the log calls itself.
        rows: Rows [1, K], one per round: who answers, or after how many seconds.
        num_clients: Number of clients, K.
        cohort: Clients asked per round, k.
        rounds: Number of rounds.
        deadline: Seconds after which an answer is late; None where rows only say who answers.
        seed: Seed of the selection.
        notes: What to say about the log.
        available: Rows [1, K], one per round: who can be asked; None for everyone.
    """
    check_memory(
        "cohort and rounds",
        f"{cohort} clients in {rounds} rounds",
        needed=cohort * rounds * BYTES_PER_QUESTION,
    )
    selector = Random(num_clients, cohort, rng=[seed])
    kept: list[npt.NDArray[Any]] = []
    limit = inf if deadline is None else deadline
    questions: list[Question] = []
    lengths = {}
    answers = _keep(rows, kept)
    for record in play(selector, answers, rounds, deadline=limit, available=available):
        number = record.cohort.round + 1
        row = kept.pop()
        times = row[0].astype(np.float64) if row.dtype != np.bool_ else None
        if times is not None:
            lengths[number] = float(record.seconds[0])
        cells = zip(
            record.cohort.clients[0].tolist(),
            record.cohort.inclusion[0].tolist(),
            record.arrived[0].tolist(),
            strict=True,
        )
        for client, inclusion, arrived in cells:
            question = Question(number, str(client), arrived, inclusion=inclusion)
            question.status = ARRIVED if arrived else "lost"
            if times is not None and arrived:
                question.seconds = float(times[client])
            if not arrived and deadline is None:
                question.late = 0.0  # without a deadline nobody is late
            questions.append(question)
    names = tuple(str(client) for client in range(num_clients))
    return make_log(
        source,
        questions,
        names=names,
        round_seconds=lengths or None,
        deadline=deadline,
        selector="random",
        notes=notes,
    )


def _keep(rows: Iterator[npt.NDArray[Any]], kept: list[npt.NDArray[Any]]) -> Iterator[Floats]:
    for row in rows:
        kept.append(row)
        yield row
