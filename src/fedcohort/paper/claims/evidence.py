"""What claims are judged by: trained runs or the paper's own tables, and simulations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.lab.simulation import Simulation
from fedcohort.metrics import jain
from fedcohort.paper import participation, published, theorem
from fedcohort.paper.cells import Cells, Quantity, values_by_seed
from fedcohort.paper.claims.group import Group
from fedcohort.paper.labels import heading
from fedcohort.paper.readings import CHOOSING_WORLDS
from fedcohort.paper.results import Results
from fedcohort.paper.setting import COHORTS, TASKS, Overrides, full_config
from fedcohort.world.classes import class_of

# Group, selector and quantity give values by seed.
TrainedValues = Callable[[Group, str, Quantity], Mapping[int, float]]
# Group and selector give the number of rounds played by seed.
PlayedRounds = Callable[[Group, str], Mapping[int, int]]
# Group and selector give the loss of each class of clients [G] by seed, the best class last.
ClassLosses = Callable[[Group, str], Mapping[int, Floats]]


def no_losses(group: Group, selector: str) -> dict[int, Floats]:
    """Return that no run recorded the loss of every client."""
    return {}


@dataclass(frozen=True, eq=False)
class Participation:
    """Who was asked and who answered under one scheme.

    Attributes:
        seeds: The seeds.
        successes: Updates that arrived [S, T].
        counts: How often each client was asked [S, K].
        chose: Seeds in which a reading of the paper was chosen, where training was needed.
    """

    seeds: tuple[int, ...]
    successes: Ints
    counts: Ints
    chose: frozenset[int] = frozenset()

    def without(self, seeds: frozenset[int]) -> "Participation":
        """Return the same without some seeds."""
        kept = [place for place, seed in enumerate(self.seeds) if seed not in seeds]
        return replace(
            self,
            seeds=tuple(self.seeds[place] for place in kept),
            successes=self.successes[kept],
            counts=self.counts[kept],
        )

    def success_ratio(self, cohort: int) -> dict[int, float]:
        """Return the share of the updates asked for that arrived, by seed."""
        ratios = self.successes.mean(axis=-1) / cohort
        return dict(zip(self.seeds, ratios.tolist(), strict=True))

    def fairness(self, clients: Ints | None = None) -> dict[int, float]:
        """Return Jain's index of the times asked, by seed, of all clients or of these."""
        counts = self.counts
        if clients is not None:
            counts = counts[:, clients]
        return dict(zip(self.seeds, jain(counts).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that claims are judged by; what is missing is empty.

    Attributes:
        trained: Values of trained runs: infinite for a run that never reached a target, missing
            for one that is not finished and has not reached it yet.
        played: How many rounds each trained run has played.
        rounds: Number of rounds played, by task.
        participation: Who was asked and who answered, by selector.
        classes: Class of success rates of each client [K]; the last class is the best.
        cohort: Clients asked per round in the simulation.
        bound_margins: The paper's bound less the regret, one number per seed, by case.
        datasets: The data set that was played for each task.
        labels: What a ground is called if it was not played as in the paper.
        left_out: Notes on the runs that are not used.
        class_losses: Loss of each class of clients in the finished runs that recorded it of the
            first class and the last. The mean of other runs is one of early rounds.
    """

    trained: TrainedValues
    played: PlayedRounds
    rounds: Mapping[str, int]
    participation: Mapping[str, Participation] = field(default_factory=dict)
    classes: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cohort: int = 20
    bound_margins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    datasets: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    class_losses: ClassLosses = no_losses

    def choosing(self, ground: str) -> set[int]:
        """Return the seeds in which a reading was chosen, of the data that a ground is about."""
        return set(CHOOSING_WORLDS.get(self.datasets.get(ground, ""), ()))


def without_choosing_worlds(evidence: Evidence) -> Evidence:
    """Return the evidence of the worlds in which no reading of the paper was chosen."""

    def trained(group: Group, selector: str, quantity: Quantity) -> dict[int, float]:
        values = evidence.trained(group, selector, quantity)
        chose = evidence.choosing(group.task)
        return {seed: value for seed, value in values.items() if seed not in chose}

    def played(group: Group, selector: str) -> dict[int, int]:
        rounds = evidence.played(group, selector)
        chose = evidence.choosing(group.task)
        return {seed: number for seed, number in rounds.items() if seed not in chose}

    def class_losses(group: Group, selector: str) -> dict[int, Floats]:
        losses = evidence.class_losses(group, selector)
        chose = evidence.choosing(group.task)
        return {seed: by_class for seed, by_class in losses.items() if seed not in chose}

    participation = {}
    for name, scheme in evidence.participation.items():
        rest = scheme.without(scheme.chose)
        if rest.seeds:
            participation[name] = rest
    return replace(
        evidence,
        trained=trained,
        played=played,
        class_losses=class_losses,
        participation=participation,
    )


def paper_evidence() -> Evidence:
    """Return the paper's own tables as evidence of one seed."""

    def trained(group: Group, selector: str, quantity: Quantity) -> dict[int, float]:
        values = _published(group, selector)
        if quantity not in values:
            return {}
        return {0: values[quantity]}

    def played(group: Group, selector: str) -> dict[int, int]:
        values = _published(group, selector)
        if not values:
            return {}
        return {0: published.ROUNDS[group.task]}

    return Evidence(trained, played, published.ROUNDS)


def _published(group: Group, selector: str) -> Mapping[Quantity, float]:
    """Return what the paper prints for a scheme in a group, if it prints anything."""
    if group.cohort != 20:
        return {}
    return published.table(group.task).get((selector, group.partition, group.mu), {})


def our_evidence(results: Results, overrides: Overrides) -> Evidence:
    """Return our results as evidence: trained runs and, where there are any, simulations."""
    configs = {}
    for task in TASKS:
        for cohort in COHORTS:
            configs[task, cohort] = full_config(task, overrides, cohort=cohort)
    tables, left_out = results.cells(*configs.values())
    cells: dict[tuple[str, int], Cells] = dict(zip(configs, tables, strict=True))

    def runs_of(group: Group, selector: str) -> list[Result]:
        table = cells[group.task, group.cohort]
        return table[selector, group.partition, "paper", group.mu]

    def trained(group: Group, selector: str, quantity: Quantity) -> dict[int, float]:
        return values_by_seed(runs_of(group, selector), quantity)

    def played(group: Group, selector: str) -> dict[int, int]:
        runs = runs_of(group, selector)
        return {run.config.first_seed: len(run.accuracy) for run in runs}

    def class_losses(group: Group, selector: str) -> dict[int, Floats]:
        losses = {}
        for run in runs_of(group, selector):
            if run.finished and _has_both_losses(run.class_loss):
                losses[run.config.first_seed] = run.class_loss
        return losses

    by_task = {task: config for (task, _), config in configs.items()}
    labels = _labels_of_tasks(by_task)
    classes = np.zeros(0, dtype=np.int64)
    cohort = 20
    schemes: dict[str, Participation] = {}
    simulated = results.simulation(participation.SIMULATION)
    if simulated is not None:
        if simulated.config.rounds != participation.SIMULATION.config.rounds:
            labels["selection"] = f"selection, T={simulated.config.rounds}"
        schemes = _participation(simulated, results, overrides)
        classes = class_of(simulated.config.clients, len(simulated.config.rates))
        cohort = simulated.config.cohort
    return Evidence(
        trained,
        played,
        {task: config.rounds for task, config in by_task.items()},
        participation=schemes,
        classes=classes,
        cohort=cohort,
        bound_margins=theorem.bound_margins(results),
        datasets={task: config.dataset for task, config in by_task.items()},
        labels=labels,
        left_out=left_out,
        class_losses=class_losses,
    )


def _labels_of_tasks(configs: Mapping[str, ComparisonConfig]) -> dict[str, str]:
    """Return words for the tasks that were not played as in the paper."""
    labels = {}
    for task, config in configs.items():
        if (config.dataset, config.rounds) != (task, TASKS[task]["rounds"]):
            target = heading(config.targets[0])
            labels[task] = f"{config.dataset}, T={config.rounds}, {target}"
    return labels


def _has_both_losses(class_loss: Floats | None) -> TypeGuard[Floats]:
    """Return whether the losses of the first class and of the last are known and finite."""
    return class_loss is not None and bool(np.isfinite(class_loss[[0, -1]]).all())


def _participation(
    simulated: Simulation, results: Results, overrides: Overrides
) -> dict[str, Participation]:
    """Return who was asked and who answered: simulated schemes, and pow-d where it is trained."""
    seeds = tuple(simulated.config.seed_list)
    schemes = {}
    for name, scheme in simulated.results.items():
        schemes[name] = Participation(seeds, scheme.successes, scheme.counts)
    runs = participation.powd_runs(results, overrides, simulated.config)
    if runs:
        trained = participation.as_simulated(runs)
        seeds = tuple(run.config.first_seed for run in runs)
        chose = frozenset(CHOOSING_WORLDS.get(runs[0].config.dataset, ()))
        schemes["pow-d"] = Participation(seeds, trained.successes, trained.counts, chose)
    return schemes
