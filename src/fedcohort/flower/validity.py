"""Which replies count: the record a model must come in, and the bounds it must keep."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from math import inf, isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, RecordDict

from fedcohort.checks import check_positive

Model = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Limits:
    """What a reply may hold: how many examples a client may declare, and how far its model may be from the one sent."""

    least_examples: float = 1
    most_examples: float = 1e9
    max_norm: float = inf

    def __post_init__(self) -> None:
        check_positive("least_examples", self.least_examples)
        check_positive("most_examples", self.most_examples)
        if self.most_examples < self.least_examples:
            raise ValueError(
                f"most_examples must be at least {self.least_examples:g}, got {self.most_examples!r}"
            )
        if not isinstance(self.max_norm, float | int) or not self.max_norm > 0:
            raise ValueError(f"max_norm must be a number above 0, got {self.max_norm!r}")


def as_model(record: ArrayRecord) -> Model:
    """Return the arrays of a record by name, to be read only."""
    return {name: as_array(array) for name, array in record.items()}


def as_array(array: Array) -> npt.NDArray[Any]:
    """Return an array in the memory that holds its bytes: `Array.numpy` copies, which for large models is half of the work."""
    if array.stype != "numpy.ndarray":
        raise ValueError(f"it is a {array.stype}, not a numpy.ndarray")
    if not array.data.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError("it is not one array")
    file = BytesIO(array.data)
    if np.lib.format.read_magic(file) != (1, 0):
        return array.numpy()  # headers of another format, as long names have
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("it holds objects")
    values = np.frombuffer(array.data, dtype, count=prod(shape), offset=file.tell())
    return values.reshape(shape, order="F" if by_columns else "C")


def all_finite(values: npt.NDArray[Any]) -> bool:
    """Return whether every number is finite; the extremes tell, as a nan is both, and cost no memory."""
    if values.size == 0 or not np.issubdtype(values.dtype, np.floating):
        return bool(np.isfinite(values).all())
    return bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def trained_model(reply: RecordDict, sent: Model, limits: Limits) -> Model:
    """Return the model in a reply; raise ValueError with the reason if there is none that counts."""
    if len(reply.array_records) != 1:
        raise ValueError(f"expected 1 ArrayRecord, got {len(reply.array_records)}")
    record = next(iter(reply.array_records.values()))
    if set(record) != set(sent):
        strange = sorted(set(record) ^ set(sent))
        raise ValueError(f"expected the arrays of the model, got a difference in {strange[0]!r}")
    model = {}
    for name, mine in sent.items():
        try:
            theirs = as_array(record[name])
        except (
            Exception
        ) as error:  # whatever a client sent as an array, it is the client's fault and ends here
            raise ValueError(f"array {name!r} cannot be read: {error}") from None
        if theirs.shape != mine.shape or theirs.dtype != mine.dtype:
            raise ValueError(
                f"array {name!r} must be {mine.dtype}{mine.shape}, got {theirs.dtype}{theirs.shape}"
            )
        if not all_finite(theirs):
            raise ValueError(f"array {name!r} is not finite")
        model[name] = theirs
    if limits.max_norm < inf and not (change := distance(model, sent)) <= limits.max_norm:
        raise ValueError(
            f"the model is {change:.4g} from the one sent, more than {limits.max_norm:g}"
        )
    return model


def distance(one: Model, other: Model) -> float:
    """Return the Euclidean distance of two models."""
    squares = [
        np.square(one[name].astype(np.float64) - other[name].astype(np.float64)).sum()
        for name in one
    ]
    return float(np.sqrt(np.sum(squares)))


def declared_metrics(reply: RecordDict, examples_key: str, limits: Limits) -> Mapping[str, Any]:
    """Return the metrics in a reply, finite and with a number of examples within the limits; else raise ValueError."""
    if len(reply.metric_records) != 1:
        raise ValueError(f"expected 1 MetricRecord, got {len(reply.metric_records)}")
    metrics = next(iter(reply.metric_records.values()))
    examples = metrics.get(examples_key)
    if (
        not isinstance(examples, int | float)
        or not limits.least_examples <= examples <= limits.most_examples
    ):
        low, high = limits.least_examples, limits.most_examples
        raise ValueError(f"{examples_key!r} must be between {low:g} and {high:g}, got {examples!r}")
    for name, value in metrics.items():
        if not all(_finite(part) for part in (value if isinstance(value, list) else [value])):
            raise ValueError(f"metric {name!r} is not finite")
    return metrics


def _finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def in_order(reply: RecordDict, sent: Model) -> None:
    """Put the arrays of a valid reply into the order of the model: some strategies match them by place, not by name."""
    name, record = next(iter(reply.array_records.items()))
    if list(record) != list(sent):
        reply[name] = ArrayRecord({part: record[part] for part in sent})


def schema(reply: RecordDict) -> tuple[Any, ...]:
    """Return the names of records and metrics, and how long lists are: strategies average only what has the same."""
    return tuple(
        (
            name,
            tuple(
                sorted(
                    (key, len(value) if isinstance(value, list) else -1)
                    for key, value in record.items()
                )
            ),
        )
        for name, record in sorted(reply.metric_records.items())
    ) + tuple(sorted(reply.array_records))


def usual_schema(replies: list[RecordDict]) -> tuple[Any, ...]:
    """Return the schema of most replies, the first of them if several are as common."""
    return Counter(map(schema, replies)).most_common(1)[0][0]
