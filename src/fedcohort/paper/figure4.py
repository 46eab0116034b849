"""Figure 4: success ratio and cumulative effective participation (CEP) over the rounds, with bands over seeds."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import SimulationResult
from fedcohort.metrics import success_ratio
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import over_rounds

SETTING = SimulationConfig(
    selectors=("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random"),
    seeds=20,
    sampler="successive",
)
CAPTION = "Lines are means over seeds, bands one standard deviation."


def report(setting: SimulationConfig, results: dict[str, SimulationResult]) -> dict[str, Chart]:
    """Draw both curves."""
    panels: dict[str, dict[str, npt.NDArray[Any]]] = {
        "success ratio": {
            name: success_ratio(of.successes, setting.cohort) for name, of in results.items()
        },
        "CEP": {name: np.cumsum(of.successes, axis=-1) for name, of in results.items()},
    }
    return {"figure4": over_rounds(panels)}
