"""Ask any selector for its cohort, and check what it returns."""

import numpy.typing as npt

from fedcohort.selection.base import BaseSelector
from fedcohort.selection.cohort_checks import check_cohort
from fedcohort.selection.protocol import Cohort, Selector


def ask(
    selector: Selector,
    round: int,
    available: npt.ArrayLike | None = None,
    runs: tuple[int, ...] = (),
) -> Cohort:
    """Return the cohort of a selector for a round.

    Args:
        selector: Any selector. The `select` of `BaseSelector` has checked its cohort already.
        round: The round, counted from 0.
        available: Who may be asked: a mask [K] or [..., K], or client ids; None for all.
        runs: Shape of the runs in lock-step that the cohort must have; () is not checked.

    Raises:
        ValueError: If the selector returns what cannot be asked.

    Examples:
        >>> from fedcohort import Random
        >>> ask(Random(4, 2, rng=0), 0, available=[1, 3]).clients
        array([1, 3])
    """
    cohort = selector.select(round, available)
    if isinstance(selector, BaseSelector) and type(selector).select is BaseSelector.select:
        return cohort
    return check_cohort(selector, round, cohort, available, runs)
