"""What a page shows of selection without training."""

import numpy as np

from fedcohort.lab.config import SimulationConfig, client_classes, has_classes
from fedcohort.lab.simulation import Simulation, SimulationResult
from fedcohort.lab.summary import simulation_rows
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.pages.comparison import describe_failures, seeds_in_words

KIND = "selection only"


def findings(simulation: Simulation) -> Findings:
    """Return what a simulation shows.

    Raises:
        ValueError: If it is the regret's, whose cases are no schemes.
    """
    setting = simulation.config
    results = simulation.results
    if not set(results) <= set(setting.selectors):
        raise ValueError(
            f"runs must hold schemes that were simulated, got {simulation.folder}; "
            "for the regret, give the folder above it"
        )
    size = f"{setting.clients:,} clients, {setting.cohort:,} asked per round"
    return Findings(
        title=f"Selection simulated: {size}, {setting.rounds:,} rounds",
        kinds={KIND: schemes(setting, results)},
        tables={"Schemes": simulation_rows(setting, results)},
        rates=setting.rates if has_classes(setting) else (),
        classes=client_classes(setting) if has_classes(setting) else None,
        allocations=simulation.allocations,
        lead=[f"Nothing is trained. {describe_failures(setting)[:-1]}, the same for every scheme."],
        notes=(
            "Means over seeds. Asked, by class: times the median client of each class was asked, the lowest rate first.",
        ),
        settings=setting.as_dict(),
        seeds=seeds_in_words(setting.first_seed, setting.seeds),
        environment=simulation.environment,
    )


def schemes(setting: SimulationConfig, results: dict[str, SimulationResult]) -> dict[str, Scheme]:
    """Return what was played, as a page takes it."""
    asked, seeds = float(setting.cohort), setting.seed_list
    return {
        name: Scheme(
            seeds, np.full(of.successes.shape, asked), of.successes.astype(np.float64), of.counts
        )
        for name, of in results.items()
    }
