"""Figures 3 and 4: which clients are asked, and which answer, without training.

Both figures show one simulation of six schemes. The paper's seventh scheme, pow-d, ranks clients
by their loss and so needs training. It is shown where training runs of it are at hand.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.result import Result
from fedcohort.lab.simulation import simulate
from fedcohort.lab.simulation_result import SimulationResult
from fedcohort.lab.summary import simulation_rows
from fedcohort.metrics import success_ratio
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides, full_config
from fedcohort.paper.simulations import Schemes, SimulationSpec
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.clients import selections_per_class
from fedcohort.reports.charts.curves import over_rounds
from fedcohort.reports.report import Report
from fedcohort.reports.words import counted
from fedcohort.world.classes import class_of

SIMULATION = SimulationSpec(
    name="participation",
    config=SimulationConfig(
        selectors=("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc", "fedcs", "random"),
        seeds=20,
        sampler="successive",
    ),
    run=simulate,
    older_folders=("figure3", "figure4"),
)
SELECTIONS_CAPTION = (
    "Figure: times each client was asked, by class of success rate; boxes pool the clients of all "
    "seeds. Table, asked, by class: the median client's times asked, as a mean over seeds."
)
SUCCESS_CAPTION = "Lines are means over seeds, bands one standard deviation."
MakeChart = Callable[[SimulationConfig, Schemes], Chart]


def report(
    name: str, make_chart: MakeChart, caption: str, results: Results, overrides: Overrides
) -> Report:
    """Report a figure of the simulation.

    Args:
        name: Name of the artefact.
        make_chart: Describes the figure.
        caption: What the figure shows.
        results: The results to read.
        overrides: Fields of the config that the user changed. They choose the training runs of
            pow-d, and a simulation with other rounds or another sampler is not shown.
    """
    stored = results.simulation(SIMULATION, name)
    if stored is None:
        return results.report_missing(name)
    difference = SIMULATION.describe_difference(stored.config, overrides)
    if difference:
        return results.report_other(name, stored.folder, difference)
    schemes = stored.results
    notes = [caption]
    runs = powd_runs(results, overrides, stored.config)
    if runs:
        schemes = schemes | {"pow-d": as_simulated(runs)}
        datasets = ", ".join(sorted({run.config.dataset for run in runs}))
        seeds = counted(len(runs), "seed")
        notes.append(f"pow-d: from its training runs on {datasets}, non-iid, FedAvg, {seeds}.")
    figures = {name: make_chart(stored.config, schemes)}
    return report_schemes(name, stored.config, schemes, figures, notes)


def report_schemes(
    name: str,
    config: SimulationConfig,
    schemes: Schemes,
    figures: Mapping[str, Chart],
    notes: Sequence[str],
) -> Report:
    """Report simulated schemes: one table and figures."""
    rows = simulation_rows(config, schemes)
    title = f"{name}: {describe_simulation(config)}, {config.sampler}"
    return Report(name, title, {"Summary": rows}, notes, {"summary": rows}, figures)


def describe_simulation(config: SimulationConfig) -> str:
    """Return a config in a line, for titles."""
    size = f"K={config.clients}, k={config.cohort}, T={config.rounds}"
    return f"{size}, {counted(config.seeds, 'seed')}"


def selections_chart(config: SimulationConfig, schemes: Schemes) -> Chart:
    """Show how often each class of clients is asked, as box plots (Figure 3)."""
    counts = {name: scheme.counts for name, scheme in schemes.items()}
    classes = class_of(config.clients, len(config.rates))
    return selections_per_class({"all": counts}, classes, config.rates)


def success_chart(config: SimulationConfig, schemes: Schemes) -> Chart:
    """Show success ratio and cumulative effective participation over rounds (Figure 4)."""
    ratios = {}
    cumulative = {}
    for name, scheme in schemes.items():
        ratios[name] = success_ratio(scheme.successes, scheme.asked_in(config.cohort))
        cumulative[name] = np.cumsum(scheme.successes, axis=-1)
    return over_rounds({"success ratio": ratios, "CEP": cumulative})


def powd_runs(results: Results, overrides: Overrides, config: SimulationConfig) -> list[Result]:
    """Return the finished training runs of pow-d that a simulation can stand beside.

    They are non-iid, under FedAvg, with as many rounds and clients; one for each seed.
    """
    fixed = {"rounds": config.rounds, "clients": config.clients, "cohort": config.cohort}
    (cells,), _ = results.cells(full_config("cifar10", overrides, **fixed))
    by_seed = {}
    for run in cells["pow-d", "primary-label", "paper", 0.0]:
        if run.finished:
            by_seed[run.config.first_seed] = run
    return list(by_seed.values())


def as_simulated(runs: Sequence[Result]) -> SimulationResult:
    """Return trained runs as the figures take them.

    Training does not record who else would have answered, so these arrays are zero.
    """
    successes = np.stack([run.valid for run in runs]).astype(np.int64)
    counts = np.stack([run.counts for run in runs]).astype(np.int64)
    return SimulationResult(
        successes,
        answering=np.zeros_like(successes),
        expected=np.zeros(successes.shape),
        counts=counts,
    )
