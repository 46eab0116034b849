"""The world `trace`: clients are online when a recorded trace says so."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedcohort.arrays import Bools
from fedcohort.world.base import Conditions, World
from fedcohort.world.intervals import read_intervals, resample
from fedcohort.world.online import make_online_world, stays
from fedcohort.world.options import FAILURE, Option, read_options

OPTIONS = {"round_seconds": Option(60.0, low=1e-6), "failure": FAILURE}


def make_trace(conditions: Conditions) -> World:
    """Return a world of clients that are online when a file of `client,on,off` says so.

    A client that is online when a round begins can be asked; it answers if it stays until the
    round ends. Every seed meets the same trace.

    Options: `round_seconds` (length of a round, default 60) and `failure` (how often a client that
    stays online fails nevertheless, default 0).
    """
    options = read_options("trace", conditions.options, OPTIONS)
    if conditions.file is None:
        raise ValueError(
            "world_file must be given for the world 'trace', got None; the flag is --world-file"
        )
    intervals = read_intervals(Path(conditions.file), conditions.num_clients)
    online, until_end = resample(intervals, conditions.num_clients, options["round_seconds"])

    runs = len(conditions.seeds)
    failure = options["failure"]
    sound = stays(conditions, failure)
    answers = _repeat(until_end, runs)
    if sound is not None:
        answers = map(np.logical_and, answers, sound)
    return make_online_world(
        conditions,
        online=_repeat(online, runs),
        success_rates=until_end.mean(axis=0) * (1 - failure),
        answers=answers,
        num_rounds=len(online),
    )


def _repeat(table: Bools, runs: int) -> Iterator[Bools]:
    """Yield each row of a table [T, K] as [S, K]."""
    return (np.broadcast_to(row, (runs, len(row))) for row in table)
