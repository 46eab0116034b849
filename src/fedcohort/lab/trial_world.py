"""The world of a comparison's runs: what every client of every run would do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.lab.config import ComparisonConfig, open_world
from fedcohort.lab.runs import RunKey
from fedcohort.world.durations import local_epochs, timed


@dataclass(frozen=True, eq=False)
class RunsWorld:
    """Who would answer when, for the R runs of a comparison.

    Attributes:
        seconds: Rows [R, K], one per round: after how many seconds each client answers.
        success_rates: How often each client answers, [K] or [R, K].
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
    if not world.has_seconds:
        rows = timed(rows, config.seconds_per_epoch * epochs, seeds, config.jitter)

    position = np.array([pairs.index((key.partition, key.seed)) for key in keys])
    success_rates = world.success_rates
    if success_rates.ndim > 1:
        success_rates = success_rates[position]
    available = None
    if world.available is not None:
        available = _expand(world.available, position)
    return RunsWorld(_expand(rows, position), success_rates, world.success_rates, available)


def _expand(rows: Iterator[npt.NDArray[Any]], position: Ints) -> Iterator[npt.NDArray[Any]]:
    """Yield rows [R, K] from rows [pairs, K]."""
    return (row[position] for row in rows)
