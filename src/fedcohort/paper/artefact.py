"""What an artefact of the paper is: a table, a figure, a theorem or the list of claims."""

from collections.abc import Callable
from dataclasses import dataclass

from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides
from fedcohort.paper.simulations import SimulationSpec
from fedcohort.reports.report import Report


@dataclass(frozen=True)
class Artefact:
    """A table or figure of the paper: what it needs, and how it is reported.

    Attributes:
        name: Its name on the command line, and of the folder of its reports.
        title: What it shows.
        report: Reads results, and never computes any. Its second argument are the fields of
            the config that the user changed.
        simulation: What must be simulated, or None.
        training: Returns what must be trained under a user's overrides, or None.
    """

    name: str
    title: str
    report: Callable[[Results, Overrides], Report]
    simulation: SimulationSpec | None = None
    training: Callable[[Overrides], list[ComparisonConfig]] | None = None
