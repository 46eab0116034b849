"""The regret of E3CS, and the bounds of Theorem 1 and of its correction.

The first cases play in the paper's world. `switch` is the smallest world that refutes the theorem
without a floor: of two clients, the first answers in the first quarter only, the second afterwards.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import Progress
from fedcohort.lab.simulation_checks import check_simulation_memory
from fedcohort.lab.simulation_result import SimulationResult, collect
from fedcohort.metrics import (
    best_fixed,
    corrected_bound,
    paper_bound,
    robust_bound,
    spare_and_floors,
    theorem_holds,
)
from fedcohort.paper.simulations import Schemes
from fedcohort.selection.e3cs import E3CS
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.recorded import replay

PAPER_ETA = 0.5
SWITCH_ROUNDS = 10_000
VARIANTS = (  # name, sampler, update
    ("exact", "systematic", "paper"),
    ("successive", "successive", "paper"),
    ("robust", "systematic", "robust"),
)


@dataclass(frozen=True, eq=False)
class Case:
    """One bandit problem: how E3CS is played, and in which world.

    Attributes:
        group: The scheme, or "switch".
        variant: What is special about this case.
        fractions: The quota of each round [T], as a fraction of k/K.
        cohort_size: Clients asked per round, k.
        eta: Learning rate.
        world: Success rates [K] to draw answers from, or a table of answers [T, K].
        sampler: Name of the sampler.
        update: Update rule of E3CS, "paper" or "robust".
    """

    group: str
    variant: str
    fractions: Floats
    cohort_size: int
    eta: float
    world: Floats
    sampler: str = "systematic"
    update: str = "paper"

    @property
    def name(self) -> str:
        """A name for tables and files."""
        return f"{self.group}, {self.variant}, eta {self.eta:.4f}"

    @property
    def num_clients(self) -> int:
        """Number of clients, K."""
        return int(self.world.shape[-1])

    @property
    def spare_and_floors(self) -> tuple[Floats, Floats]:
        """R_t and sigma_t in all rounds, each [T]."""
        return spare_and_floors(self.fractions, self.num_clients, self.cohort_size)

    @property
    def is_covered(self) -> bool:
        """Whether a corrected bound applies to this case.

        The corrected theorem needs exact sampling and a floor that is high enough. The bound
        of the robust update needs a constant floor.
        """
        spare, floors = self.spare_and_floors
        if self.update == "robust":
            return bool((floors == floors[0]).all())
        if self.sampler == "successive":
            return False
        return bool(theorem_holds(self.eta, spare, floors, self.num_clients).all())


def cases(config: SimulationConfig) -> list[Case]:
    """Return every scheme at the theorem's and at the paper's rate, then the switch."""
    rates = class_rates(config.clients, config.rates)
    found = []
    for group in config.selectors:
        fractions = quota_fractions(group, config.rounds)
        for eta in (best_rate(fractions, config.clients, config.cohort), PAPER_ETA):
            for variant, sampler, update in VARIANTS:
                case = Case(group, variant, fractions, config.cohort, eta, rates, sampler, update)
                found.append(case)
    return found + switch_cases(SWITCH_ROUNDS)


def switch_cases(rounds: int) -> list[Case]:
    """Return E3CS without a floor, with the floor that the proof needs, and robust.

    All play at the rate of Theorem 1.
    """
    in_first_quarter = np.arange(rounds) < rounds // 4
    world = np.stack([in_first_quarter, ~in_first_quarter], axis=-1).astype(np.float64)
    no_floor = np.zeros(rounds)
    eta = best_rate(no_floor, 2, 1)
    floor_of_proof = np.full(rounds, eta / (1 + eta))
    return [
        Case("switch", "no floor", no_floor, 1, eta, world),
        Case("switch", "floor of the proof", floor_of_proof, 1, eta, world),
        Case("switch", "robust", no_floor, 1, eta, world, update="robust"),
    ]


def quota_fractions(selector: str, rounds: int) -> Floats:
    """Return the quota phi_t of one of the paper's schemes in all rounds [T]."""
    if selector == "e3cs-inc":
        return (np.arange(rounds) >= rounds // 4).astype(np.float64)
    return np.full(rounds, float(selector.removeprefix("e3cs-")))


def best_rate(fractions: Floats, num_clients: int, cohort_size: int) -> float:
    """Return the rate that minimises the bound of Theorem 1: sqrt(K ln K / sum R_t).

    It is the paper's, which may exceed 1 in short runs; `eta="auto"` is at most 1.
    """
    spare, _ = spare_and_floors(fractions, num_clients, cohort_size)
    total = float(spare.sum())
    if total <= 0:  # the quota leaves nothing to learn
        return 1.0
    return sqrt(num_clients * log(num_clients) / total)


def play(config: SimulationConfig, on_progress: Progress | None = None) -> Schemes:
    """Play all cases; the robust update has no share, as in its bound."""
    check_simulation_memory(config)
    results = {}
    for case in cases(config):
        results[case.name] = play_case(case, config.seed_list, on_progress)
    return results


def play_case(
    case: Case, seeds: list[int], on_progress: Progress | None = None
) -> SimulationResult:
    """Play one case with all seeds in lock-step."""
    selector = E3CS(
        case.num_clients,
        case.cohort_size,
        rng=seeds,
        quota=lambda round: float(case.fractions[round]),
        eta=case.eta,
        update=case.update,
        share=0.0,
        sampler=case.sampler,
    )
    rounds = case.fractions.size

    def on_round(done: int) -> None:
        if on_progress:
            on_progress(case.name, done, rounds)

    if case.world.ndim == 1:
        answers = bernoulli(case.world, seeds)
        return collect(selector, answers, case.world, rounds, len(seeds), on_round)
    table = np.broadcast_to(case.world[:, None, :], (rounds, len(seeds), case.num_clients))
    return collect(selector, replay(table > 0), None, rounds, len(seeds), on_round)


def regret_so_far(case: Case, played: SimulationResult) -> Floats:
    """Return the expected regret [S, T] against the fixed allocation that is best in the end."""
    spare, floors = case.spare_and_floors
    means = np.broadcast_to(case.world, (spare.size, case.num_clients))
    share = best_fixed(spare @ means, spare, floors)
    value: Floats = spare * (means @ share) + floors * means.sum(axis=-1)
    return np.cumsum(value - played.expected, axis=-1)


def paper_bound_so_far(case: Case) -> Floats:
    """Return the bound of Theorem 1 at every round [T], with the rate fixed."""
    spare, _ = case.spare_and_floors
    return case.eta * np.cumsum(spare) + paper_bound(case.eta, spare[:0], case.num_clients)


def corrected_bound_so_far(case: Case) -> Floats:
    """Return the corrected bound at every round [T], with the rate fixed."""
    spare, floors = case.spare_and_floors
    bound = corrected_bound(case.eta, spare, floors, case.num_clients)
    rate = case.eta
    if case.update == "robust":
        bound = robust_bound(case.eta, spare, floors, case.num_clients)
        rate = case.eta / 2
    return np.asarray(bound + rate * (np.cumsum(spare) - spare.sum()))
