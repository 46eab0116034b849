"""Figure 3: how often each class of clients is asked, as box plots, one panel per scheme.

The paper's seventh scheme, pow-d, ranks clients by their loss and so needs training: it is not among these.
"""

from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import SimulationResult
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.clients import selections_per_class
from fedcohort.world.classes import class_of

SETTING = SimulationConfig(
    selectors=("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random"),
    seeds=20,
    sampler="successive",
)
CAPTION = "Times each client was asked, by class of success rate; all seeds pooled."


def report(setting: SimulationConfig, results: dict[str, SimulationResult]) -> dict[str, Chart]:
    """Draw the box plots."""
    counts = {name: played.counts for name, played in results.items()}
    classes = class_of(setting.clients, len(setting.rates))
    return {"figure3": selections_per_class({"all": counts}, classes, setting.rates)}
