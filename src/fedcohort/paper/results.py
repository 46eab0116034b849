"""The results of one folder, which are read once and given to all reports."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.lab import folder as run_folder
from fedcohort.lab.archive import gather_results
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.lab.simulation import Simulation
from fedcohort.paper.cells import VARIANT_FIELDS, Cells, collect_cells
from fedcohort.paper.setting import Overrides, has_papers_data
from fedcohort.paper.simulations import SimulationSpec
from fedcohort.reports.report import Report


@dataclass(eq=False)
class Results:
    """Everything a folder holds: training runs, and simulations, which are read when needed.

    Attributes:
        runs: The training runs.
        source: The folder.
        exact: Variant fields that must be as asked; the others are as most runs have them.
        simulations: Simulations that were read or played already, by folder.
        summaries: Exported summaries that were read already, by folder.
    """

    runs: Sequence[Result]
    source: Path | None = None
    exact: Collection[str] = ("model", "samples_per_client")
    simulations: dict[Path, Simulation] = field(default_factory=dict)
    summaries: dict[Path, Mapping[str, Any]] = field(default_factory=dict)

    def cells(
        self, *configs: ComparisonConfig, exact: Collection[str] = ()
    ) -> tuple[list[Cells], list[str]]:
        """Return the runs of comparisons by cell, and notes on the runs that are left out.

        Args:
            *configs: The comparisons; their runs are all of one variant.
            exact: Further variant fields that must be as asked.
        """
        return collect_cells(self.runs, configs, {*self.exact, *exact})

    def simulation(self, spec: SimulationSpec, artefact: str = "") -> Simulation | None:
        """Return a simulation that the folder stores, or None if it stores none.

        Args:
            spec: Which simulation.
            artefact: The artefact that asks; see `SimulationSpec.find`.
        """
        if self.source is None:
            return None
        folder = spec.find(self.source, artefact)
        if folder is None:
            return None
        if folder not in self.simulations:
            self.simulations[folder] = spec.load(folder)
        return self.simulations[folder]

    def exported_summary(self, spec: SimulationSpec) -> Mapping[str, Any]:
        """Return what an export kept of a simulation in place of its curves, or nothing."""
        if self.source is None:
            return {}
        folder = self.source / spec.name
        if folder not in self.summaries:
            self.summaries[folder] = run_folder.read_exported(folder)
        return self.summaries[folder]

    def report_missing(self, name: str) -> Report:
        """Return the report of an artefact that the folder holds no results of."""
        return Report(name, name, {}, [f"Not run: {self.source} holds no results of it."])

    def report_other(self, name: str, folder: Path, difference: str) -> Report:
        """Return the report of an artefact whose simulation was played with other settings.

        Args:
            name: The artefact.
            folder: The folder that stores the simulation.
            difference: The settings that differ, in words.
        """
        return Report(name, name, {}, [f"Not run: {folder} holds {difference}."])


def read_results(source: Path, overrides: Overrides) -> Results:
    """Read the training runs of a folder.

    Args:
        source: Folder of a reproduction, or of exported results.
        overrides: Fields of the config that the user changed.
    """
    return Results(gather_results(source), source, exact_fields(overrides))


def exact_fields(overrides: Overrides) -> set[str]:
    """Return the variant fields that must be as asked.

    These are the fields that the user gave and, on the paper's own data, named or not, the
    paper's model and number of samples.
    """
    exact = {name for name in VARIANT_FIELDS if name in overrides}
    if has_papers_data(overrides):
        exact |= {"model", "samples_per_client"}
    return exact
