"""The bounds and metric names that a reply is checked against."""

from dataclasses import dataclass
from math import inf

from fedcohort.checks import check_int, check_positive


@dataclass(frozen=True)
class Limits:
    """Bounds that a client's reply must keep to count.

    The arrays of a reply need no bound of their own: they must have exactly the names, the types,
    the shapes and the bytes of the model that was sent.

    Three bounds follow what clients returned: the median over the clients that were last accepted,
    or over the replies of the round if that is larger, times a factor. Fewer than three clients
    define no median. `inf` switches such a bound off.

    Args:
        least_examples: Smallest number of examples that a client may declare.
        most_examples: Largest number of examples that a client may declare.
        max_norm: Largest Euclidean distance of the returned model from the model sent.
        norm_factor: Largest distance as a multiple of the median distance. Arrays of whole
            numbers, such as counters, are left out here.
        examples_factor: Largest number of examples as a multiple of the median number. It holds
            for evaluations, too, with the median of their own.
        max_loss: Largest absolute value of the loss that the selector ranks clients by.
        loss_factor: The same as a multiple of the median absolute value, which counts as at least
            1: where most losses are nearly 0, honest clients can be far above the median.
        most_metrics: Largest number of metric values in a reply; a list counts with its length.
        most_config_bytes: Largest size of all configurations in a reply.
        longest_name: Largest number of characters in the name of a record or a metric.

    Raises:
        ValueError: If a bound is not positive, or no number of examples could keep both bounds.

    Examples:
        >>> from fedcohort.flower import Limits
        >>> Limits(max_norm=50.0).norm_factor
        100.0
    """

    least_examples: float = 1
    most_examples: float = 1e9
    max_norm: float = inf
    norm_factor: float = 100.0
    examples_factor: float = 1000.0
    max_loss: float = 1e15
    loss_factor: float = 1000.0
    most_metrics: int = 1000
    most_config_bytes: int = 100_000
    longest_name: int = 200

    def __post_init__(self) -> None:
        check_positive("least_examples", self.least_examples)
        check_positive("most_examples", self.most_examples)
        if self.most_examples < self.least_examples:
            raise ValueError(
                f"most_examples must be at least {self.least_examples:g}, "
                f"got {self.most_examples!r}"
            )
        _check_above("max_norm", self.max_norm, 0)
        _check_above("norm_factor", self.norm_factor, 1)
        _check_above("examples_factor", self.examples_factor, 1)
        check_positive("max_loss", self.max_loss)
        _check_above("loss_factor", self.loss_factor, 1)
        check_int("most_metrics", self.most_metrics, 1)
        check_int("most_config_bytes", self.most_config_bytes, 0)
        check_int("longest_name", self.longest_name, 1)


def _check_above(name: str, value: float, low: float) -> None:
    """Check a bound that may be infinite."""
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    if not is_number or not value > low:
        raise ValueError(f"{name} must be a number above {low:g}, got {value!r}")


@dataclass(frozen=True)
class ReplyRules:
    """The limits of a reply, and the names of the metrics that it must hold.

    Attributes:
        limits: Bounds of the model and of the number of examples.
        examples_key: Metric that holds the number of examples.
        loss_key: Metric that holds the loss; None if the selector needs no loss.
    """

    limits: Limits
    examples_key: str = "num-examples"
    loss_key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.limits, Limits):
            raise ValueError(f"limits must be Limits, got {self.limits!r}")
