"""Whether what a folder holds can be of its comparison."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fedcohort.checks import check_choice
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.runs import count_runs
from fedcohort.selection.protocol import NOBODY

PER_RUN = ("accuracy", "loss", "seconds", "wasted_seconds", "wasted_bytes")  # [T, runs]
PER_CLIENT = ("clients", "arrived", "valid")  # [T, runs, k]
OFFICIAL = "official_accuracy"  # [T, runs], only if it was asked for
CLASS_ACCURACY = "class_accuracy"  # [T, runs, classes of clients], not in older folders
LABEL_ACCURACY = "label_accuracy"  # [T, runs, labels], not in older folders
CLASS_LOSS = "class_loss"  # [T, runs, classes of clients], only if it was asked for


def check_records(config: ComparisonConfig, records: Mapping[str, Any], path: Path) -> None:
    """Refuse records that cannot be those of a comparison.

    Args:
        config: The comparison's settings.
        records: Arrays [T, runs, ...] by name.
        path: Where they were read, for the message.

    Raises:
        ValueError: If an array is missing, has another shape, or names a client that is none.
    """
    runs = count_runs(config)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(PER_RUN, (runs,))
    shapes |= dict.fromkeys(PER_CLIENT, (runs, _width(config, records)))
    for name in shapes:
        if name not in records:
            raise ValueError(f"{path} must hold {name} of every round, got {', '.join(records)}")
    if OFFICIAL in records:
        shapes[OFFICIAL] = (runs,)
    for name in (CLASS_ACCURACY, LABEL_ACCURACY, CLASS_LOSS):
        if name in records:
            shapes[name] = (runs, max(1, records[name].shape[-1]))

    for name, shape in shapes.items():
        values = records[name]
        if values.shape[1:] != shape or values.dtype.kind not in "biuf":
            raise ValueError(
                f"{path} must hold {name} as numbers of shape {shape} in every round, "
                f"got {values.dtype} of {values.shape[1:]}"
            )

    _check_clients(config, records["clients"], path)


def _width(config: ComparisonConfig, records: Mapping[str, Any]) -> int:
    """Return how many clients a round has places for: k, or more if a scheme asks more."""
    clients = records.get("clients")
    if clients is None or clients.ndim != 3:
        return config.cohort
    return max(config.cohort, min(int(clients.shape[-1]), config.clients))


def _check_clients(config: ComparisonConfig, clients: npt.NDArray[Any], path: Path) -> None:
    """Refuse clients that do not exist; NOBODY stands only where runs ask different numbers."""
    last = config.clients - 1
    may_ask_fewer = config.knows_offline or clients.shape[-1] > config.cohort
    first = NOBODY if may_ask_fewer else 0
    if clients.dtype.kind not in "iu" or clients.min() < first or clients.max() > last:
        raise ValueError(
            f"{path} must hold clients from {first} to {last}, "
            f"got {clients.min()} to {clients.max()}"
        )


def check_label_counts(
    config: ComparisonConfig, counts: Mapping[str, npt.NDArray[Any]], path: Path
) -> None:
    """Refuse label counts that cannot be those of a comparison.

    Args:
        config: The comparison's settings.
        counts: How many samples of each label every client owns, [K, C] by partition.
        path: Where they were read, for the message.

    Raises:
        ValueError: If a partition is none of the comparison's, or its counts are none.
    """
    for partition, table in counts.items():
        check_choice(f"partition in {path}", partition, config.partitions)
        is_table = table.ndim == 2 and table.dtype.kind in "iu" and table.size > 0
        if not is_table or len(table) != config.clients or table.min() < 0:
            raise ValueError(
                f"{path} must hold counts of shape ({config.clients}, labels) for {partition}, "
                f"got {table.dtype} of {table.shape}"
            )
