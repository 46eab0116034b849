"""Selection without training: several selectors in the same failing world, many seeds in lock-step."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import tee
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, row_starts
from fedcohort.checks import MAX_COUNT, check_choice, check_int, check_positive, check_range
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.metrics import class_quartiles, jain
from fedcohort.rounds import play
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import SELECTORS, Federation, make_selector
from fedcohort.selection.sampling import SAMPLERS
from fedcohort.statistics import sd
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import PAPER_RATES, class_of, class_rates

Progress = Callable[[str, int, int], None]  # part, rounds done, rounds in all
KEYS = {"clients": "num_clients", "cohort": "cohort_size"}  # on disk


@dataclass(frozen=True)
class SimulationConfig:
    """All that decides a simulation: the paper's numbers unless others are given."""

    selectors: tuple[str, ...] = (
        "e3cs-0",
        "e3cs-0.5",
        "e3cs-0.8",
        "e3cs-inc",
        "e3cs-robust",
        "fedcs",
        "random",
    )
    clients: int = 100
    cohort: int = 20
    rounds: int = 2500
    seeds: int = 20
    first_seed: int = 0
    rates: tuple[float, ...] = PAPER_RATES
    eta: float | str = 0.5
    sampler: str = "systematic"

    def __post_init__(self) -> None:
        for name in ("selectors", "rates"):
            if not getattr(self, name):
                raise ValueError(f"{name} must name at least one, got none")
        if len(set(self.selectors)) < len(self.selectors):
            raise ValueError(f"selectors must be named once each, got {', '.join(self.selectors)}")
        check_int("clients", self.clients, len(self.rates), MAX_COUNT)
        check_int("cohort", self.cohort, 1, self.clients)
        check_int("rounds", self.rounds, 1, MAX_COUNT)
        check_int("seeds", self.seeds, 1, MAX_COUNT)
        check_int("first_seed", self.first_seed, 0)
        check_choice("sampler", self.sampler, SAMPLERS)
        if self.eta != "auto":
            check_positive("eta", self.eta)
        for rate in self.rates:
            check_range("rates", rate, 0.0, 1.0)
        for name in self.selectors:
            check_choice("selector", name, SELECTORS)
            scheme = SELECTORS[name].selector
            if scheme.needs_losses or scheme.probes_losses:
                raise ValueError(
                    f"selector must need no losses where nothing is trained, got {name!r}; `compare` trains"
                )

    @property
    def seed_list(self) -> list[int]:
        """The seeds played in lock-step."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON, by their names on disk."""
        return {KEYS.get(name, name): value for name, value in asdict(self).items()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "SimulationConfig":
        """Return the configuration that `as_dict` described."""
        names = {key: name for name, key in KEYS.items()}
        fields: dict[str, Any] = {names.get(key, key): value for key, value in values.items()}
        for name in ("selectors", "rates"):
            if name in fields:
                fields[name] = tuple(fields[name])
        return SimulationConfig(**fields)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """What came of one selector, S seeds.

    successes: [S, T] updates that arrived; answering: [S, T] clients that would have answered, asked or not;
    expected:  [S, T] sum of the success rates of those asked; counts: [S, K] times each client was asked.
    """

    successes: Ints
    answering: Ints
    expected: Floats
    counts: Ints


def run(
    setting: SimulationConfig,
    progress: Progress | None = None,
    watch: AllocationRecorder | None = None,
) -> dict[str, SimulationResult]:
    """Play every selector of the setting; progress is told how far each is, a watch looks at probabilities."""
    return {name: play_one(setting, name, progress, watch) for name in setting.selectors}


def play_one(
    setting: SimulationConfig,
    name: str,
    progress: Progress | None = None,
    watch: AllocationRecorder | None = None,
) -> SimulationResult:
    """Play one selector through all rounds, in the worlds that the seeds stand for."""
    rates = class_rates(setting.clients, setting.rates)
    federation = Federation(
        setting.clients,
        setting.cohort,
        rng=setting.seed_list,
        horizon=setting.rounds,
        success_rates=rates,
        eta=setting.eta,
        sampler=setting.sampler,
    )
    selector = make_selector(name, federation)
    told = (lambda done: progress(name, done, setting.rounds)) if progress else None
    look = (lambda round: watch.look(name, selector, round)) if watch else None
    return collect(
        selector,
        bernoulli(rates, setting.seed_list),
        rates,
        setting.rounds,
        setting.seeds,
        told,
        look,
    )


def collect(
    selector: Selector,
    answers: Iterator[Bools],
    rates: Floats | None,
    rounds: int,
    runs: int,
    told: Callable[[int], None] | None = None,
    look: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Play the loop and keep sums, not records; a world without rates is one whose answers are their own expectation.

    told: after some rounds; look: before every round, when the selector has learnt from the one before.
    """
    successes, answering = (
        np.zeros((runs, rounds), dtype=np.int64),
        np.zeros((runs, rounds), dtype=np.int64),
    )
    expected, counts = (
        np.zeros((runs, rounds)),
        np.zeros((runs, selector.num_clients), dtype=np.int64),
    )
    world, truth = tee(answers)
    if look:
        look(0)
    for round, (record, would_answer) in enumerate(
        zip(play(selector, world, rounds), truth, strict=False)
    ):
        clients = record.cohort.clients
        successes[:, round] = record.arrived.sum(axis=-1)
        answering[:, round] = would_answer.sum(axis=-1)
        expected[:, round] = successes[:, round] if rates is None else rates[clients].sum(axis=-1)
        counts.reshape(-1)[clients + row_starts(counts.shape)] += 1
        if told and (round % 50 == 49 or round == rounds - 1):
            told(round + 1)
        if look and round < rounds - 1:
            look(round + 1)
    return SimulationResult(successes, answering, expected, counts)


def summary(
    setting: SimulationConfig, results: dict[str, SimulationResult]
) -> list[dict[str, Any]]:
    """Return one row of figures per selector: means over seeds; asked: the median client of each class."""
    classes = class_of(setting.clients, len(setting.rates))
    rows = []
    for name, played in results.items():
        cep = played.successes.sum(axis=-1)
        medians = class_quartiles(played.counts, classes)[:, 1]
        row: dict[str, Any] = {
            "selector": name,
            "success ratio": float(cep.mean() / (setting.rounds * setting.cohort)),
            "CEP": float(cep.mean()),
            "CEP sd": sd(cep.astype(np.float64)),
            "Jain": float(jain(played.counts).mean()),
            "asked, by class": "/".join(f"{median:.0f}" for median in medians),
        }
        rows.append(row)
    return rows


def arrays(results: dict[str, SimulationResult]) -> dict[str, npt.NDArray[Any]]:
    """Return the results as named arrays, for the store."""
    return {
        f"{name}/{field}": value
        for name, played in results.items()
        for field, value in vars(played).items()
    }
