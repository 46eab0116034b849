"""What is recorded of each round of a comparison."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.lab.record_checks import CLASS_ACCURACY, LABEL_ACCURACY
from fedcohort.learning import Evaluation
from fedcohort.rounds import Record
from fedcohort.selection.protocol import NOBODY


def make_row(record: Record, tested: Evaluation, width: int, model_bytes: int) -> dict[str, Any]:
    """Return what is recorded of a round.

    A model that is sent in vain wastes its bytes once; an update that is rejected wastes them
    twice, because it was sent back.

    Args:
        record: What happened in the round.
        tested: How well the models did after it.
        width: The most clients that a run asks. `NOBODY` fills the rows of runs that ask fewer.
        model_bytes: Size of the model.

    Returns:
        Arrays [runs, ...] by name.
    """
    lost = (record.cohort.is_asked & ~record.arrived).sum(axis=-1)
    rejected = (record.arrived & ~record.valid).sum(axis=-1)
    return {
        "clients": _widen(record.cohort.clients.astype(np.int32), width, fill=NOBODY),
        "arrived": _widen(record.arrived, width, fill=False),
        "valid": _widen(record.valid, width, fill=False),
        "accuracy": tested.accuracy,
        "loss": tested.loss,
        CLASS_ACCURACY: tested.class_accuracy.astype(np.float32),
        LABEL_ACCURACY: tested.label_accuracy.astype(np.float32),
        "seconds": record.seconds,
        "wasted_seconds": record.wasted,
        "wasted_bytes": (lost + 2 * rejected) * model_bytes,
    }


def _widen(values: npt.NDArray[Any], width: int, fill: int) -> npt.NDArray[Any]:
    """Return values [runs, n] of a round as [runs, width], so that rounds can be stacked."""
    missing = width - values.shape[-1]
    return np.pad(values, ((0, 0), (0, missing)), constant_values=fill)
