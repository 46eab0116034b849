"""The world of a comparison's runs: what every client of every run would do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.lab.config import ComparisonConfig, open_world
from fedcohort.lab.runs import RunKey
from fedcohort.world.durations import local_epochs, success_before, timed


@dataclass(frozen=True, eq=False)
class RunsWorld:
    """Who would answer when, for the R runs of a comparison.

    Attributes:
        seconds: Rows [R, K], one per round: after how many seconds each client answers.
        success_rates: How often each client answers before the deadline, [K] or [R, K].
        rates_by_owners: The same, [K] or [P, K] for the P pairs of partition and seed.
        available: Rows [R, K] of who is online; None if the server does not know.
    """

    seconds: Iterator[Floats]
    success_rates: Floats
    rates_by_owners: Floats
    available: Iterator[Bools] | None


def open_runs_world(
    config: ComparisonConfig,
    keys: Sequence[RunKey],
    label_counts: Mapping[tuple[str, int], Ints],
    model_bytes: int,
) -> RunsWorld:
    """Return the world of all runs.

    A partition and a seed are one world, whatever the selector or aggregation: its rows are
    computed once, for all runs that share them. A world that only says who answers is timed by the
    clients' epochs; seconds are taken as they are.

    Args:
        config: The comparison.
        keys: The runs.
        label_counts: How many samples of each label each client owns [K, C], by partition and
            seed.
        model_bytes: Size of the model.

    Raises:
        ValueError: If the world cannot be played.
    """
    pairs = list(label_counts)
    seeds = [seed for _, seed in pairs]
    epochs = local_epochs(config.clients, seeds, config.epochs)
    counts = np.stack([label_counts[pair] for pair in pairs])
    world = open_world(
        config,
        seeds,
        label_counts=counts,
        data_sizes=counts.sum(axis=-1),
        epochs=epochs,
        model_bytes=model_bytes,
    )
    rows = world.rows
    rates_by_owners = world.success_rates
    if not world.has_seconds:
        rows = timed(rows, config.seconds_per_epoch * epochs, seeds, config.jitter)
        rates_by_owners = _rates_in_time(config, world.success_rates, epochs)

    position = np.array([pairs.index((key.partition, key.seed)) for key in keys])
    success_rates = rates_by_owners
    if success_rates.ndim > 1:
        success_rates = success_rates[position]
    available = None
    if world.available is not None:
        available = _expand(world.available, position)
    return RunsWorld(_expand(rows, position), success_rates, rates_by_owners, available)


def _rates_in_time(config: ComparisonConfig, success_rates: Floats, epochs: Ints) -> Floats:
    """Return how often each client answers before the deadline, [K] or [P, K].

    A client's time does not depend on whether it answers, so the two probabilities multiply.

    Args:
        config: The comparison.
        success_rates: How often each client answers at all, [K] or [P, K].
        epochs: Local epochs of each client, [P, K].
    """
    deadline = config.seconds_until_deadline
    slowest = config.seconds_per_epoch * max(config.epochs)
    if not config.jitter and slowest <= deadline:
        return success_rates  # Nobody can be late, so the rates need no row for each pair.
    seconds = np.asarray(config.seconds_per_epoch * epochs, dtype=np.float64)
    in_time = success_before(deadline, seconds, config.jitter)
    return np.asarray(success_rates * in_time)


def _expand(rows: Iterator[npt.NDArray[Any]], position: Ints) -> Iterator[npt.NDArray[Any]]:
    """Yield rows [R, K] from rows [pairs, K]."""
    return (row[position] for row in rows)
