"""The bounds and metric names that a reply is checked against."""

from dataclasses import dataclass
from math import inf

from fedcohort.checks import check_positive


@dataclass(frozen=True)
class Limits:
    """Bounds that a client's reply must keep to count.

    Args:
        least_examples: Smallest number of examples that a client may declare.
        most_examples: Largest number of examples that a client may declare.
        max_norm: Largest Euclidean distance of the returned model from the model sent.

    Raises:
        ValueError: If a bound is not positive, or no number of examples could keep both bounds.

    Examples:
        >>> from fedcohort.flower import Limits
        >>> Limits(max_norm=50.0)
        Limits(least_examples=1, most_examples=1000000000.0, max_norm=50.0)
    """

    least_examples: float = 1
    most_examples: float = 1e9
    max_norm: float = inf

    def __post_init__(self) -> None:
        check_positive("least_examples", self.least_examples)
        check_positive("most_examples", self.most_examples)
        if self.most_examples < self.least_examples:
            raise ValueError(
                f"most_examples must be at least {self.least_examples:g}, "
                f"got {self.most_examples!r}"
            )
        if not isinstance(self.max_norm, float | int) or not self.max_norm > 0:
            raise ValueError(f"max_norm must be a number above 0, got {self.max_norm!r}")


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
