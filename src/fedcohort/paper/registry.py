"""The one list of what can be reproduced: without training, by training, and the claims, which read all of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import Progress, SimulationResult, simulate
from fedcohort.lab.summary import simulation_rows
from fedcohort.paper import figure3, figure4, regret
from fedcohort.reports.charts import Chart

if TYPE_CHECKING:
    from fedcohort.paper.artefact import Artefact


@dataclass(frozen=True)
class Experiment:
    """An experiment is data and functions: `report` and `rows` only read what `run` returned."""

    setting: SimulationConfig
    run: Callable[[SimulationConfig, Progress | None], dict[str, SimulationResult]]
    rows: Callable[[SimulationConfig, dict[str, SimulationResult]], list[dict[str, Any]]]
    report: Callable[[SimulationConfig, dict[str, SimulationResult]], dict[str, Chart]]
    caption: str


EXPERIMENTS: dict[str, Experiment] = {
    "figure3": Experiment(
        figure3.SETTING, simulate, simulation_rows, figure3.report, figure3.CAPTION
    ),
    "figure4": Experiment(
        figure4.SETTING, simulate, simulation_rows, figure4.report, figure4.CAPTION
    ),
    "regret": Experiment(regret.SETTING, regret.run, regret.rows, regret.report, regret.CAPTION),
}
TRAINED = ("table2", "figure5", "table3", "figure6", "figure7", "server_step", "ablations")
NAMES = (*EXPERIMENTS, *TRAINED, "claims")


def artefacts() -> "dict[str, Artefact]":
    """Return what is reproduced by training."""
    from fedcohort.paper import ablations, figure5, figure6, figure7, server_step, table2, table3
    from fedcohort.paper.artefact import Artefact

    modules = (table2, figure5, table3, figure6, figure7, server_step, ablations)
    return {
        name: Artefact(module.settings, module.report)
        for name, module in zip(TRAINED, modules, strict=True)
    }
