"""The result of one run: its settings, its curves, and which run it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.runs import RunKey, run_keys

Array = npt.NDArray[Any]
COLUMNS = {
    "accuracy": np.float32,
    "loss": np.float32,
    "official": np.float32,
    "valid": np.uint16,
    "counts": np.uint32,
}
PER_ROUND = ("accuracy", "loss", "official", "valid", "worst_class")
# Columns that older runs do not have. A file in which no run has one is written without it.
OPTIONAL_COLUMNS = {
    "class_accuracy": np.float32,
    "label_accuracy": np.float32,
    "worst_class": np.float32,
    "class_loss": np.float32,
}
# Settings that decide how a run is computed or shown, but not its results.
NON_IDENTITY_FIELDS = (
    "targets",
    "official_every",
    "losses_every",
    "checkpoint_every",
    "device",
    "compiled",
    "mode",
    "slots",
)


@dataclass(frozen=True, eq=False)
class Result:
    """One run: its settings, its curves, and what it was computed with.

    Attributes:
        config: The settings of this run alone.
        accuracy: Accuracy [t] in the rounds played so far, nan where it was not tested.
        loss: Loss [t], nan where it was not tested.
        official: Accuracy [t] on the data set's own test set, nan where it was not tested.
        valid: Updates that were used [t].
        counts: How often each client was asked [K].
        provenance: Environment, cost and the digest of the samples, as far as they are known.
        class_accuracy: Accuracy for each class of clients in the last round [G], nan for a class
            without test samples; None if it was not recorded.
        label_accuracy: The same for each label [C].
        worst_class: Lowest accuracy over the classes of clients [t], nan where it was not tested.
        class_loss: Loss on the training data of each class of clients [G], the mean over the
            rounds in which it was recorded; None if it was not.
    """

    config: ComparisonConfig
    accuracy: Array
    loss: Array
    official: Array
    valid: Array
    counts: Ints
    provenance: Mapping[str, Any]
    class_accuracy: Array | None = None
    label_accuracy: Array | None = None
    worst_class: Array | None = None
    class_loss: Array | None = None

    @property
    def key(self) -> RunKey:
        """Which run this is."""
        return run_keys(self.config)[0]

    @property
    def finished(self) -> bool:
        """Whether all rounds were played."""
        return len(self.accuracy) >= self.config.rounds


def single_run(config: ComparisonConfig, key: RunKey) -> ComparisonConfig:
    """Return the settings of one run of a comparison."""
    return replace(
        config,
        selectors=(key.selector,),
        partitions=(key.partition,),
        aggregations=(key.aggregation,),
        mus=(key.mu,),
        seeds=1,
        first_seed=key.seed,
    )


@lru_cache(maxsize=10_000)
def identity(config: ComparisonConfig) -> str:
    """Return all that decides the results but for rounding, as one string.

    Two runs with the same identity are the same run.
    """
    settings = config.as_dict()
    # Dealing labels again matters only where labels are dealt.
    settings["refill"] = config.refill and "primary-label" in config.partitions
    deciding = {}
    for name, value in settings.items():
        if name not in NON_IDENTITY_FIELDS:
            deciding[name] = _as_floats(value)
    return json.dumps(deciding)


def _as_floats(value: Any) -> Any:
    """Return whole numbers as floats, in lists too: 0 and 0.0 decide the same."""
    if isinstance(value, list | tuple):
        return [_as_floats(part) for part in value]
    return float(value) if isinstance(value, int) else value


def make_result(
    config: ComparisonConfig, columns: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Result:
    """Return a result of the stored types.

    Args:
        config: The settings of this run alone.
        columns: Arrays by the names in `COLUMNS` and `OPTIONAL_COLUMNS`.
        provenance: What it was computed with.

    Raises:
        ValueError: If columns do not fit together, or no round was played.
    """
    arrays = {name: np.asarray(columns[name], dtype=kind) for name, kind in COLUMNS.items()}
    for name, kind in OPTIONAL_COLUMNS.items():
        if columns.get(name) is not None:
            arrays[name] = np.asarray(columns[name], dtype=kind)
    result = Result(config=config, provenance=dict(provenance), **arrays)
    shape = result.accuracy.shape
    per_round = [name for name in PER_ROUND if name in arrays]
    if len(shape) != 1 or any(arrays[name].shape != shape for name in per_round):
        raise ValueError(
            f"{', '.join(per_round)} of other rounds than each other: {shape[:1]} of accuracy"
        )
    if shape[0] < 1:
        raise ValueError(f"0 of {config.rounds} rounds, at least 1 must have been played")
    if shape[0] > config.rounds or result.counts.shape != (config.clients,):
        raise ValueError(
            f"{shape[0]} of {config.rounds} rounds, and counts of {result.counts.size} of "
            f"{config.clients} clients"
        )
    return result
