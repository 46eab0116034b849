"""The page of a simulation: selection alone, without training."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fedcohort.lab.recorder import load_allocations
from fedcohort.lab.simulation import SimulationConfig, SimulationResult, summary
from fedcohort.paper.simulated import stored
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.pages.comparison import environment
from fedcohort.reports.pages.wording import list_rates, list_seeds
from fedcohort.world.classes import class_of

KIND = "selection only"
NOTE = (
    "Means over seeds. Asked, by class: times the median client of each class was asked, the "
    "lowest rate first."
)


def findings(folder: Path) -> Findings:
    """Return what the page of a simulation shows.

    Args:
        folder: The run folder.

    Raises:
        ValueError: If the folder holds cases of the regret, which are not schemes.
    """
    config, results = stored(folder)
    if not set(results) <= set(config.selectors):
        raise ValueError(
            f"runs must hold schemes that were simulated, got {folder}; "
            "for the regret, give the folder above it"
        )
    size = f"{config.clients:,} clients, {config.cohort:,} asked per round"
    rates = list_rates(config.rates)
    return Findings(
        title=f"Selection simulated: {size}, {config.rounds:,} rounds",
        kinds={KIND: schemes(config, results)},
        tables={"Schemes": summary(config, results)},
        rates=config.rates,
        classes=class_of(config.clients, len(config.rates)),
        allocations=load_allocations(folder),
        lead=[
            f"Nothing is trained. Clients fail: by class, they answer {rates} of the time, the "
            "same for every scheme."
        ],
        notes=[NOTE],
        settings=config.as_dict(),
        seeds=list_seeds(config.first_seed, config.seeds),
        environment=environment(folder),
    )


def schemes(config: SimulationConfig, results: Mapping[str, SimulationResult]) -> dict[str, Scheme]:
    """Return simulated selectors as the schemes of a page."""
    found = {}
    for name, result in results.items():
        successes = result.successes.astype(np.float64)
        found[name] = Scheme(
            seeds=config.seed_list,
            asked=np.full(successes.shape, float(config.cohort)),
            successes=successes,
            counts=result.counts,
        )
    return found
