"""Does this reply count, and if not, why?

A check is a function that takes a `Reply` and raises `ValueError` with the reason if the reply
does not count. To add a check, write the function and add it to `TRAINING_CHECKS` or
`EVALUATION_CHECKS`. Checks run in the order of the list, so a check may rely on those before it.
"""

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedcohort.flower.limits import ReplyRules
from fedcohort.flower.models import (
    Model,
    distance,
    is_finite,
    model_from_record,
    read_array,
    read_header,
    record_from_model,
)
from fedcohort.flower.text import quote

MOST_RECORDS = 100  # in one reply


class Reply:
    """The content of one reply, the rules that it must keep, and the model that was sent.

    A reply to an evaluation holds no model: `sent` is None.
    """

    def __init__(self, content: RecordDict, rules: ReplyRules, sent: Model | None = None) -> None:
        self.content = content
        self.rules = rules
        self.sent = sent or {}
        self.holds_model = sent is not None
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

    def rewrite(self) -> None:
        """Replace the content by one that the server has written itself.

        The arrays are encoded again, in the order of the model sent, because some strategies match
        them by position. Only what the checks have seen is kept.
        """
        array_name = next(iter(self.content.array_records), None)
        metric_name = next(iter(self.content.metric_records))
        metrics = MetricRecord(dict(self.metrics))
        clean = RecordDict(dict(self.content.config_records))
        if self.holds_model and array_name is not None:
            record = record_from_model(self.model)
            clean[array_name] = record
            self._arrays = model_from_record(record)
        clean[metric_name] = metrics
        self.content = clean


def check_records(reply: Reply) -> None:
    """Check that the reply holds few records with short names and small configurations."""
    if len(reply.content) > MOST_RECORDS:
        raise ValueError(f"expected at most {MOST_RECORDS} records, got {len(reply.content)}")
    limits = reply.rules.limits
    size = 0
    for name, record in reply.content.items():
        if len(name) > limits.longest_name:
            raise ValueError(
                f"names of records must have at most {limits.longest_name} characters, "
                f"got {quote(name)}"
            )
        if isinstance(record, ConfigRecord):
            size += _count_bytes(record)
    if size > limits.most_config_bytes:
        raise ValueError(
            f"configurations must have at most {limits.most_config_bytes} bytes, got {size}"
        )


def check_one_array_record(reply: Reply) -> None:
    """Check that the reply holds exactly one model."""
    records = len(reply.content.array_records)
    if records != 1:
        raise ValueError(f"expected 1 ArrayRecord, got {records}")


def check_array_names(reply: Reply) -> None:
    """Check that the arrays have the names of the model sent."""
    if len(reply.array_record) > 2 * len(reply.sent) + 1:
        raise ValueError(
            f"expected the {len(reply.sent)} arrays of the model, got {len(reply.array_record)}"
        )
    differences = sorted(set(reply.array_record) ^ set(reply.sent))
    if differences:
        raise ValueError(
            f"expected the arrays of the model, got a difference in {quote(differences[0])}"
        )


def check_arrays(reply: Reply) -> None:
    """Check that each array has the type, the shape and the bytes sent, and is finite.

    Nothing is decoded before the header is known to be that of the array sent.
    """
    for name, sent in reply.sent.items():
        try:
            header = read_header(reply.array_record[name])
        except Exception as error:  # a client may send anything, and must not end the run
            raise ValueError(f"array {quote(name)} cannot be read: {error}") from None
        if header.shape != sent.shape or header.dtype != sent.dtype:
            raise ValueError(
                f"array {quote(name)} must be {sent.dtype}{sent.shape}, "
                f"got {header.dtype}{header.shape}"
            )

        try:
            array = reply.read_array(name)
        except Exception as error:
            raise ValueError(f"array {quote(name)} cannot be read: {error}") from None
        if not is_finite(array):
            raise ValueError(f"array {quote(name)} is not finite")


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


def check_metric_sizes(reply: Reply) -> None:
    """Check that there are few metrics with short names."""
    limits = reply.rules.limits
    if len(reply.metrics) > limits.most_metrics:
        raise ValueError(
            f"expected at most {limits.most_metrics} metrics, got {len(reply.metrics)}"
        )
    values = 0
    for name, value in reply.metrics.items():
        if len(name) > limits.longest_name:
            raise ValueError(
                f"names of metrics must have at most {limits.longest_name} characters, "
                f"got {quote(name)}"
            )
        values += len(value) if isinstance(value, list) else 1
    if values > limits.most_metrics:
        raise ValueError(f"expected at most {limits.most_metrics} metric values, got {values}")


def check_examples(reply: Reply) -> None:
    """Check that the number of examples is within the limits."""
    key = reply.rules.examples_key
    low = reply.rules.limits.least_examples
    high = reply.rules.limits.most_examples
    examples = reply.metrics.get(key)
    if not isinstance(examples, int | float) or not low <= examples <= high:
        raise ValueError(f"{key!r} must be between {low:g} and {high:g}, got {quote(examples)}")


def check_metrics_finite(reply: Reply) -> None:
    """Check that all metrics are finite numbers or lists of them."""
    for name, value in reply.metrics.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(map(_is_finite_number, numbers)):
            raise ValueError(f"metric {quote(name)} is not finite")


def check_loss(reply: Reply) -> None:
    """Check that the loss is one number within the limits, if the selector needs one."""
    key = reply.rules.loss_key
    if key is None:
        return
    loss = reply.metrics.get(key)
    if loss is None or isinstance(loss, list):
        raise ValueError(f"metric {key!r} must be one number, got {quote(loss)}")
    high = reply.rules.limits.max_loss
    if not abs(loss) <= high:
        raise ValueError(f"metric {key!r} must be between {-high:g} and {high:g}, got {loss:g}")


def _count_bytes(record: ConfigRecord) -> int:
    """Return about how many bytes a configuration takes."""
    size = 0
    for name, value in record.items():
        size += len(name)
        for part in value if isinstance(value, list) else [value]:
            size += max(1, len(part)) if isinstance(part, str | bytes) else 8
    return size


def _is_finite_number(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


Check = Callable[[Reply], None]

EVALUATION_CHECKS: tuple[Check, ...] = (
    check_records,
    check_one_metric_record,
    check_metric_sizes,
    check_examples,
    check_metrics_finite,
)

TRAINING_CHECKS: tuple[Check, ...] = (
    check_records,
    check_one_array_record,
    check_array_names,
    check_arrays,
    check_distance,
    check_one_metric_record,
    check_metric_sizes,
    check_examples,
    check_metrics_finite,
    check_loss,
)
