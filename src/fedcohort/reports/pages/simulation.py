"""What a page shows of selection without training."""

from pathlib import Path

import numpy as np

from fedcohort.lab.recorder import load_allocations
from fedcohort.lab.simulation import SimulationConfig, SimulationResult, summary
from fedcohort.paper.simulated import stored
from fedcohort.reports.findings import Findings, Scheme
from fedcohort.reports.pages.comparison import environment, seeds_in_words
from fedcohort.world.classes import class_of

KIND = "selection only"


def findings(folder: Path) -> Findings:
    """Return what a folder of `simulate` holds; the regret's is not one of schemes, and is refused."""
    setting, results = stored(folder)
    if not set(results) <= set(setting.selectors):
        raise ValueError(
            f"runs must hold schemes that were simulated, got {folder}; for the regret, give the folder above it"
        )
    size = f"{setting.clients:,} clients, {setting.cohort:,} asked per round"
    rates = ", ".join(f"{rate:.0%}" for rate in setting.rates)
    return Findings(
        title=f"Selection simulated: {size}, {setting.rounds:,} rounds",
        kinds={KIND: schemes(setting, results)},
        tables={"Schemes": summary(setting, results)},
        rates=setting.rates,
        classes=class_of(setting.clients, len(setting.rates)),
        allocations=load_allocations(folder),
        lead=[
            f"Nothing is trained. Clients fail: by class, they answer {rates} of the time, the same for every scheme."
        ],
        notes=(
            "Means over seeds. Asked, by class: times the median client of each class was asked, the lowest rate first.",
        ),
        settings=setting.as_dict(),
        seeds=seeds_in_words(setting.first_seed, setting.seeds),
        environment=environment(folder),
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
