"""The one list of what can be reproduced without training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fedcohort.experiments import figure3, figure4, regret
from fedcohort.experiments.simulation import Played, Progress, Setting, summary
from fedcohort.reports.figures import Figure


@dataclass(frozen=True)
class Experiment:
    """An experiment is data and functions: `report` and `rows` only read what `run` returned."""

    setting: Setting
    run: Callable[[Setting, Progress | None], dict[str, Played]]
    rows: Callable[[Setting, dict[str, Played]], list[dict[str, Any]]]
    report: Callable[[Setting, dict[str, Played]], dict[str, Figure]]
    caption: str


EXPERIMENTS: dict[str, Experiment] = {
    "figure3": Experiment(figure3.SETTING, figure3.run, summary, figure3.report, figure3.CAPTION),
    "figure4": Experiment(figure4.SETTING, figure4.run, summary, figure4.report, figure4.CAPTION),
    "regret": Experiment(regret.SETTING, regret.run, regret.rows, regret.report, regret.CAPTION),
}
