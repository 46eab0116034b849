"""Settings of times that a world with seconds of its own does not use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedcohort.lab.config import ComparisonConfig


def check_times(config: "ComparisonConfig") -> None:
    """Refuse settings of times that change nothing in a world that has seconds of its own.

    Raises:
        ValueError: If there is jitter, or a time per epoch that decides no deadline either.
    """
    words = f"in the world {config.world!r}, which says itself how many seconds clients take"
    if config.jitter:
        raise ValueError(f"jitter must be 0 {words}, got {config.jitter:g}")
    usual = type(config).seconds_per_epoch
    if config.deadline is not None and config.seconds_per_epoch != usual:
        raise ValueError(
            f"seconds_per_epoch must be {usual:g} {words}, if a deadline is given, "
            f"got {config.seconds_per_epoch:g}"
        )
