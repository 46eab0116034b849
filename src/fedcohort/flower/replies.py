"""Does this reply count, and if not, why?

A check is a function that takes a `Reply` and raises `ValueError` with the reason if the reply
does not count. To add a check, write the function and add it to `TRAINING_CHECKS` or
`EVALUATION_CHECKS`. Checks run in the order of the list, so a check may rely on those before it.
"""

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

import numpy.typing as npt
from flwr.app import ArrayRecord, MetricRecord, RecordDict

from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.models import Model, distance, is_finite, read_array


class Reply:
    """The content of one reply, the rules that it must keep, and the model that was sent."""

    def __init__(self, content: RecordDict, rules: ReplyRules, sent: Model | None = None) -> None:
        self.content = content
        self.rules = rules
        self.sent = sent or {}
        self._arrays: Model = {}

    @property
    def array_record(self) -> ArrayRecord:
        """The record that holds the trained model."""
        return next(iter(self.content.array_records.values()))

    @property
    def metrics(self) -> MetricRecord:
        """The metrics that the client reports."""
        return next(iter(self.content.metric_records.values()))

    @property
    def model(self) -> Model:
        """The trained model, its arrays in the order of the model sent."""
        return {name: self.read_array(name) for name in self.sent}

    @property
    def examples(self) -> float:
        """The number of examples that the client trained on."""
        return float(self.metrics[self.rules.examples_key])  # type: ignore[arg-type]  # checked

    @property
    def loss(self) -> float:
        """The loss that the client reports, NaN if the rules ask for none."""
        if self.rules.loss_key is None:
            return float("nan")
        return float(self.metrics[self.rules.loss_key])  # type: ignore[arg-type]  # checked

    def read_array(self, name: str) -> npt.NDArray[Any]:
        """Return one array of the model; each is read once."""
        if name not in self._arrays:
            self._arrays[name] = read_array(self.array_record[name])
        return self._arrays[name]

    def sort_arrays(self) -> None:
        """Put the arrays into the order of the model sent.

        Some strategies match arrays by position, not by name.
        """
        if list(self.array_record) == list(self.sent):
            return
        record_name = next(iter(self.content.array_records))
        record = self.array_record
        self.content[record_name] = ArrayRecord({name: record[name] for name in self.sent})


def check_one_array_record(reply: Reply) -> None:
    """Check that the reply holds exactly one model."""
    records = len(reply.content.array_records)
    if records != 1:
        raise ValueError(f"expected 1 ArrayRecord, got {records}")


def check_array_names(reply: Reply) -> None:
    """Check that the arrays have the names of the model sent."""
    differences = sorted(set(reply.array_record) ^ set(reply.sent))
    if differences:
        raise ValueError(
            f"expected the arrays of the model, got a difference in {differences[0]!r}"
        )


def check_arrays(reply: Reply) -> None:
    """Check that each array can be read, has the type and shape sent, and is finite."""
    for name, sent in reply.sent.items():
        try:
            array = reply.read_array(name)
        except Exception as error:  # a client may send anything, and must not end the run
            raise ValueError(f"array {name!r} cannot be read: {error}") from None

        if array.shape != sent.shape or array.dtype != sent.dtype:
            raise ValueError(
                f"array {name!r} must be {sent.dtype}{sent.shape}, got {array.dtype}{array.shape}"
            )
        if not is_finite(array):
            raise ValueError(f"array {name!r} is not finite")


def check_distance(reply: Reply) -> None:
    """Check that the model is not too far from the model sent."""
    max_norm = reply.rules.limits.max_norm
    if max_norm == inf:
        return
    norm = distance(reply.model, reply.sent)
    if not norm <= max_norm:
        raise ValueError(f"the model is {norm:.4g} from the one sent, more than {max_norm:g}")


def check_one_metric_record(reply: Reply) -> None:
    """Check that the reply holds exactly one record of metrics."""
    records = len(reply.content.metric_records)
    if records != 1:
        raise ValueError(f"expected 1 MetricRecord, got {records}")


def check_examples(reply: Reply) -> None:
    """Check that the number of examples is within the limits."""
    key = reply.rules.examples_key
    low = reply.rules.limits.least_examples
    high = reply.rules.limits.most_examples
    examples = reply.metrics.get(key)
    if not isinstance(examples, int | float) or not low <= examples <= high:
        raise ValueError(f"{key!r} must be between {low:g} and {high:g}, got {examples!r}")


def check_metrics_finite(reply: Reply) -> None:
    """Check that all metrics are finite numbers or lists of them."""
    for name, value in reply.metrics.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(map(_is_finite_number, numbers)):
            raise ValueError(f"metric {name!r} is not finite")


def check_loss(reply: Reply) -> None:
    """Check that the loss is one number, if the selector needs one."""
    key = reply.rules.loss_key
    if key is None:
        return
    loss = reply.metrics.get(key)
    if loss is None or isinstance(loss, list):
        raise ValueError(f"metric {key!r} must be one number, got {loss!r}")


def _is_finite_number(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


Check = Callable[[Reply], None]

EVALUATION_CHECKS: tuple[Check, ...] = (
    check_one_metric_record,
    check_examples,
    check_metrics_finite,
)

TRAINING_CHECKS: tuple[Check, ...] = (
    check_one_array_record,
    check_array_names,
    check_arrays,
    check_distance,
    check_one_metric_record,
    check_examples,
    check_metrics_finite,
    check_loss,
)
