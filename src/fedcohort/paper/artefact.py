"""What can be reproduced by training: its settings, and a report that only reads results."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fedcohort.lab.archive import Result
from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper.cells import Cells, cells
from fedcohort.reports.report import Report

Changes = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Pool:
    """All results at hand; `strict` names settings that are taken as asked, not as most of the runs have them."""

    results: Collection[Result]
    strict: Collection[str] = ("model", "samples_per_client")

    def cells(
        self, *asked: ComparisonConfig, strict: Collection[str] = ()
    ) -> tuple[list[Cells], list[str]]:
        """Return the runs of comparisons by cell, all of one kind, and in words what is left out."""
        return cells(self.results, asked, {*self.strict, *strict})


@dataclass(frozen=True)
class Artefact:
    """Data and functions: `settings` says what must be trained under a user's changes, `report` reads what there is."""

    settings: Callable[[Changes], list[ComparisonConfig]]
    report: Callable[[Changes, Pool], Report]


def about(*found: Cells) -> list[str]:
    """Return what the runs of tables were computed with, and what that took, a line for each part they were trained in."""
    lines: dict[str, None] = {}
    for run in (run for table in found for runs in table.values() for run in runs):
        cost = run.provenance
        words = [
            f"{name} {cost[name]}"
            for name in ("torch", "numpy", "fedcohort", "commit")
            if cost.get(name)
        ]
        how = f"{run.config.model}, {run.config.precision}" + (
            ", compiled" if run.config.compiled and run.config.device != "cpu" else ""
        )
        took = ""
        runs, rounds, seconds, steps = (
            cost.get(name) for name in ("runs", "timed_rounds", "seconds", "client_steps")
        )
        if runs and rounds and seconds and steps:
            took = f" {runs} runs, {rounds} rounds: {seconds:,.0f} s, {steps / seconds:,.0f} client steps/s."
        where = cost.get("gpu") or ("a CPU" if run.config.device == "cpu" else "a GPU")
        lines[f"{cost.get('part', 'Runs')}: {', '.join([how, f'on {where}', *words])}.{took}"] = (
            None
        )
    return list(lines)


def title_of(of: ComparisonConfig) -> str:
    """Return the setting in a line, for titles."""
    return f"{of.dataset}, K={of.clients}, k={of.cohort}, T={of.rounds}, {of.sampler} sampling"
