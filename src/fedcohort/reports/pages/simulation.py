"""The page of a simulation: selection alone, without training."""

from collections.abc import Mapping

import numpy as np

from fedcohort.lab.config import SimulationConfig, client_classes, has_classes
from fedcohort.lab.named_parts import labelled, selector_labels
from fedcohort.lab.simulation import Simulation
from fedcohort.lab.simulation_result import SimulationResult
from fedcohort.lab.summary import simulation_rows
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.pages.simulation_answer import simulation_answer
from fedcohort.reports.pages.wording import describe_failures, list_seeds
from fedcohort.reports.words import counted

KIND = "selection only"
NOTE = (
    "Means over seeds. Asked, by class: times the median client of each class was asked, in the "
    "order of the rates in the settings."
)


def findings(simulation: Simulation) -> Findings:
    """Return what the page of a simulation shows.

    Args:
        simulation: The simulation, loaded from its run folder or just played.

    Raises:
        ValueError: If it holds cases of the regret, which are not schemes.
    """
    config = simulation.config
    results = simulation.results
    if not set(results) <= set(config.selectors):
        raise ValueError(
            f"runs must hold schemes that were simulated, got {simulation.folder}; "
            "for the regret, give the folder above it"
        )
    found = schemes(config, labelled(results, config))
    size = f"{counted(config.clients, 'client')}, {config.cohort:,} asked per round"
    return Findings(
        title=f"Selection simulated: {size}, {counted(config.rounds, 'round')}",
        kinds={KIND: found},
        answer=simulation_answer(found, selector_labels(config).get("random", "")),
        tables={"Schemes": simulation_rows(config, labelled(results, config))},
        rates=config.rates if has_classes(config) else (),
        classes=client_classes(config) if has_classes(config) else None,
        allocations=labelled(simulation.allocations, config),
        lead=[f"Nothing is trained. {describe_failures(config)}, the same for every scheme."],
        notes=[NOTE],
        settings=config.as_dict(),
        seeds=list_seeds(config.first_seed, config.seeds),
        environment=simulation.environment,
    )


def schemes(
    config: SimulationConfig, results: Mapping[str, SimulationResult]
) -> dict[str, SchemeResults]:
    """Return simulated selectors as the schemes of a page.

    Args:
        config: The configuration of the simulation.
        results: What came of each selector.
    """
    found = {}
    for name, result in results.items():
        successes = result.successes.astype(np.float64)
        found[name] = SchemeResults(
            seeds=config.seed_list,
            asked=result.asked_in(config.cohort).astype(np.float64),
            successes=successes,
            counts=result.counts,
        )
    return found
