"""Theorem 1: regret against the best fixed allocation and against the clairvoyant, beside the paper's bound and ours.

The first cases play in the paper's world. `switch` is the smallest world that refutes the theorem without a floor: of two
clients, the first answers in the first quarter only, the second afterwards.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import Progress, SimulationResult, collect
from fedcohort.metrics import (
    best_fixed,
    clairvoyant_value,
    corrected_bound,
    paper_bound,
    robust_bound,
    spare_and_floors,
    theorem_holds,
)
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import regret_and_bounds
from fedcohort.selection.e3cs import E3CS
from fedcohort.statistics import estimate
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.recorded import replay

SETTING = SimulationConfig(selectors=("e3cs-0", "e3cs-0.5", "e3cs-0.8", "e3cs-inc"), seeds=100)
SWITCH_ROUNDS = 10_000
CAPTION = "Regret: mean over seeds, band one standard deviation; grey: bounds. Last: a world that refutes Theorem 1 at sigma = 0."


@dataclass(frozen=True, eq=False)
class Case:
    """One bandit problem: how E3CS is played, and in which world (rates [K] to draw answers from, or a table [T, K])."""

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
        """K."""
        return int(self.world.shape[-1])

    @property
    def spare_and_floors(self) -> tuple[Floats, Floats]:
        """R_t and sigma_t in all rounds."""
        return spare_and_floors(self.fractions, self.num_clients, self.cohort_size)

    @property
    def covered(self) -> bool:
        """Whether a corrected bound speaks of this case: exact sampling and a floor that is high enough, or constant."""
        spare, floors = self.spare_and_floors
        if self.update == "robust":
            return bool((floors == floors[0]).all())
        return self.sampler != "successive" and bool(
            theorem_holds(self.eta, spare, floors, self.num_clients).all()
        )


def cases(setting: SimulationConfig) -> list[Case]:
    """Return every scheme with the theorem's rate and the paper's, with both samplers and robust; then the switch."""
    rates = class_rates(setting.clients, setting.rates)
    found = []
    for name in setting.selectors:
        fractions = fractions_of(name, setting.rounds)
        for eta in (best_rate(fractions, setting.clients, setting.cohort), 0.5):
            for variant, sampler, update in (
                ("exact", "systematic", "paper"),
                ("successive", "successive", "paper"),
                ("robust", "systematic", "robust"),
            ):
                found.append(
                    Case(name, variant, fractions, setting.cohort, eta, rates, sampler, update)
                )
    return found + switch_cases(SWITCH_ROUNDS)


def switch_cases(rounds: int) -> list[Case]:
    """Return E3CS at the theorem's rate without a floor, with the floor that its proof needs, and robust."""
    first = np.arange(rounds) < rounds // 4
    world = np.stack([first, ~first], axis=-1).astype(np.float64)
    eta = best_rate(np.zeros(rounds), 2, 1)
    none, needed = np.zeros(rounds), np.full(rounds, eta / (1 + eta))
    return [
        Case("switch", "no floor", none, 1, eta, world),
        Case("switch", "floor of the proof", needed, 1, eta, world),
        Case("switch", "robust", none, 1, eta, world, update="robust"),
    ]


def run(setting: SimulationConfig, progress: Progress | None = None) -> dict[str, SimulationResult]:
    """Play all cases; the robust update goes without its share, as its bound does."""
    return {case.name: play_case(case, setting.seed_list, progress) for case in cases(setting)}


def play_case(case: Case, seeds: list[int], progress: Progress | None = None) -> SimulationResult:
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
    told = (lambda done: progress(case.name, done, rounds)) if progress else None
    if case.world.ndim == 1:
        return collect(selector, bernoulli(case.world, seeds), case.world, rounds, len(seeds), told)
    table = np.broadcast_to(case.world[:, None, :], (rounds, len(seeds), case.num_clients))
    return collect(selector, replay(table > 0), None, rounds, len(seeds), told)


def regret_so_far(case: Case, played: SimulationResult) -> Floats:
    """Return the expected regret [S, T] against the fixed allocation that is best in the end."""
    spare, floors = case.spare_and_floors
    means = np.broadcast_to(case.world, (spare.size, case.num_clients))
    share = best_fixed(spare @ means, spare, floors)
    value: Floats = spare * (means @ share) + floors * means.sum(axis=-1)
    return np.cumsum(value - played.expected, axis=-1)


def bound_so_far(case: Case, sharp: bool) -> Floats:
    """Return the paper's bound, or the corrected one, at every round [T], the rate being fixed."""
    spare, floors = case.spare_and_floors
    if not sharp:
        return case.eta * np.cumsum(spare) + paper_bound(case.eta, spare[:0], case.num_clients)
    bound = (robust_bound if case.update == "robust" else corrected_bound)(
        case.eta, spare, floors, case.num_clients
    )
    rate = case.eta / 2 if case.update == "robust" else case.eta
    return np.asarray(bound + rate * (np.cumsum(spare) - spare.sum()))


def rows(setting: SimulationConfig, results: dict[str, SimulationResult]) -> list[dict[str, Any]]:
    """Return one row per case: regret, bounds, and whether the theorem's condition and statement hold."""
    return [_row(case, results[case.name]) for case in cases(setting)]


def report(setting: SimulationConfig, results: dict[str, SimulationResult]) -> dict[str, Chart]:
    """Draw regret over rounds at the theorem's rate, one panel per floor, and the switch."""
    panels: dict[str, dict[str, Floats]] = {}
    bounds: dict[str, dict[str, Floats]] = {}
    for case in (case for case in cases(setting) if case.eta != 0.5):
        panels.setdefault(case.group, {})[case.variant] = regret_so_far(case, results[case.name])
        bounds.setdefault(case.group, {}).setdefault(
            "paper's bound", bound_so_far(case, sharp=False)
        )
        if case.covered and case.update == "paper":
            bounds[case.group].setdefault("corrected bound", bound_so_far(case, sharp=True))
    return {"regret": regret_and_bounds(panels, bounds)}


def fractions_of(selector: str, rounds: int) -> Floats:
    """Return phi_t of one of the paper's schemes in all rounds."""
    if selector == "e3cs-inc":
        return (np.arange(rounds) >= rounds // 4).astype(np.float64)
    return np.full(rounds, float(selector.removeprefix("e3cs-")))


def best_rate(fractions: Floats, num_clients: int, cohort_size: int) -> float:
    """Return the rate that minimises the bound of Theorem 1: sqrt(K ln K / sum R_t)."""
    spare, _ = spare_and_floors(fractions, num_clients, cohort_size)
    return sqrt(num_clients * log(num_clients) / float(spare.sum())) if spare.sum() > 0 else 1.0


def _row(case: Case, played: SimulationResult) -> dict[str, Any]:
    spare, floors = case.spare_and_floors
    regret = regret_so_far(case, played)[:, -1]
    ahead = clairvoyant_value(played.answering, spare, floors) - played.successes
    bound = float(bound_so_far(case, sharp=False)[-1])
    return {
        "case": f"{case.group}, {case.variant}",
        "eta": case.eta,
        "regret, best fixed": float(regret.mean()),
        "standard error": estimate(regret.tolist()).error,
        "regret, clairvoyant": float(ahead.sum(axis=-1).mean()),
        "paper's bound": bound,
        "corrected bound": float(bound_so_far(case, sharp=True)[-1])
        if case.covered
        else float("nan"),
        "corrected theorem applies": case.covered,
        "within paper's bound": bool(regret.mean() <= bound),
    }
