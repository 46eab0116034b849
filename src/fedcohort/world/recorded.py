"""The world `recorded`: observed rounds, read from a file and played again."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools
from fedcohort.world.base import Conditions, World
from fedcohort.world.options import read_options
from fedcohort.world.trace import as_trace, read_trace


def make_recorded(conditions: Conditions) -> World:
    """Return a world that plays the rows of a file; every seed meets the same rows.

    A client's success rate is the share of recorded rounds in which it answers before the
    deadline; without a deadline, in which it answers at all.
    """
    read_options("recorded", conditions.options, {})
    if conditions.file is None:
        raise ValueError(
            "world_file must be given for the world 'recorded', got None; the flag is --world-file"
        )
    path = Path(conditions.file)
    table = read_trace(path)

    num_rounds, num_columns = table.shape
    if num_columns != conditions.num_clients:
        raise ValueError(
            f"{path} must have {conditions.num_clients} columns, one per client, got {num_columns}"
        )
    return World(
        rows=_same_for_all(table, conditions.seeds),
        success_rates=_answers_in_time(table, conditions.deadline).mean(axis=0),
        num_rounds=num_rounds,
        has_seconds=table.dtype != np.bool_,
    )


def replay(table: npt.ArrayLike) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows of a recorded table, round by round, until it ends.

    Args:
        table: Rows [T, K] or [T, S, K] of who answers (bool, or 0 and 1), or after how many
            seconds (float, infinity for never).

    Returns:
        An iterator of T rows: bool for answers, float for seconds.

    Raises:
        ValueError: If the table holds anything else, such as negative seconds.

    Examples:
        >>> from fedcohort.world.recorded import replay
        >>> [row.tolist() for row in replay([[1, 0], [1, 1]])]
        [[True, False], [True, True]]
    """
    return iter(as_trace(table))


def _answers_in_time(table: npt.NDArray[Any], deadline: float | None) -> Bools:
    """Return who answers in time [T, K]; recorded answers have no times, so all of them are."""
    if table.dtype == np.bool_:
        return table
    if deadline is None:
        return np.asarray(np.isfinite(table))
    return np.asarray(table <= deadline)


def _same_for_all(table: npt.NDArray[Any], seeds: Sequence[int]) -> Iterator[npt.NDArray[Any]]:
    """Yield each row of a table [T, K] as [S, K], once per seed."""
    shape = (len(seeds), table.shape[1])
    return (np.broadcast_to(row, shape) for row in table)
