"""The artefacts that `fedcohort reproduce` knows.

To add one, write a module with a `report` and add a row here. This module loads no PyTorch:
`--help` shows the names.
"""

from functools import partial

from fedcohort.paper import (
    ablations,
    cohorts,
    curves,
    participation,
    server_step,
    table_reports,
    theorem,
)
from fedcohort.paper.artefact import Artefact
from fedcohort.paper.claims import verdicts


def _figure(name: str, title: str, make_chart: participation.MakeChart, caption: str) -> Artefact:
    """Return a figure of the simulation without training."""
    report = partial(participation.report, name, make_chart, caption)
    return Artefact(name, title, report, simulation=participation.SIMULATION)


def _table(name: str, title: str, task: str) -> Artefact:
    """Return a table of a task."""
    report = partial(table_reports.report, name, title, task)
    return Artefact(name, title, report, training=partial(table_reports.configs, task))


def _curves(name: str, title: str, task: str) -> Artefact:
    """Return the curves of a task, from the runs of its table."""
    report = partial(curves.report, name, title, task)
    return Artefact(name, title, report, training=partial(table_reports.configs, task))


_ALL = (
    _figure(
        "figure3", "Figure 3", participation.selections_chart, participation.SELECTIONS_CAPTION
    ),
    _figure("figure4", "Figure 4", participation.success_chart, participation.SUCCESS_CAPTION),
    Artefact("regret", "Theorem 1", theorem.report, simulation=theorem.SIMULATION),
    _table("table2", "Table II", task="emnist-letters"),
    _curves("figure5", "Figure 5", task="emnist-letters"),
    _table("table3", "Table III", task="cifar10"),
    _curves("figure6", "Figure 6", task="cifar10"),
    Artefact("figure7", "Figure 7", cohorts.report, training=cohorts.configs),
    Artefact("server_step", "Server step", server_step.report, training=server_step.configs),
    Artefact("ablations", "Ablations", ablations.report, training=ablations.configs),
    Artefact("claims", "Claims of the paper", verdicts.report),
)
ARTEFACTS: dict[str, Artefact] = {artefact.name: artefact for artefact in _ALL}
