"""The options of a run, as `CohortStrategy` has checked them."""

from dataclasses import dataclass
from pathlib import Path

from fedcohort.flower.selection import selector_name
from fedcohort.selection.protocol import Selector


@dataclass(frozen=True)
class RunOptions:
    """The checked arguments of `CohortStrategy` that concern the run as a whole."""

    selector: str | Selector
    cohort_size: int
    num_clients: int | None
    seed: int
    deadline: float | None
    aggregation: str
    close_early: bool
    wait: float
    partial_start: bool
    enough: int
    pause: float
    folder: Path | None
    resume: bool
    from_previous: bool
    tensorboard: bool

    @property
    def selector_name(self) -> str:
        """The registered name of the selector, or its class."""
        return selector_name(self.selector)

    @property
    def fixed(self) -> dict[str, str]:
        """The options that a resumed run must share with the rounds before."""
        return {"selector": self.selector_name, "aggregation": self.aggregation}
