"""The cells of a table: the runs of one scheme over seeds, what they say, and how that stands to the published value.

A value is infinite where an accuracy was never reached, and nan where a run has not come that far yet.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab.archive import Result, identity, single_run
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.runs import run_keys
from fedcohort.metrics import first_at
from fedcohort.reports.words import counted
from fedcohort.statistics import sd

Quantity = (
    float | str
)  # a target accuracy: the first round that reaches it; "final", "official": accuracy in the last round
Key = tuple[str, str, str, float]  # selector, partition, aggregation, mu
Cells = dict[Key, list[Result]]
FITTED = ("model", "samples_per_client", "precision")
Fit = tuple[object, ...]  # values of those that are free


def cells(
    results: Iterable[Result], asked: Sequence[ComparisonConfig], strict: Collection[str] = ()
) -> tuple[list[Cells], list[str]]:
    """Return the runs of each comparison's cells, all seeds that there are, and in words what is left out.

    What is asked for together is compared: of model, samples per client and precision those not in `strict` are taken as most
    of the runs on a data set have them, the same for all. Cells without runs are empty.
    """
    free = [name for name in FITTED if name not in strict]
    in_order = sorted(results, key=lambda result: result.config.first_seed)
    wanted = [
        {
            _signature(single_run(of, place), free): _key(single_run(of, place))
            for place in run_keys(of)
        }
        for of in asked
    ]
    found = [
        [(mine[mark], run) for run in in_order if (mark := _signature(run.config, free)) in mine]
        for mine in wanted
    ]
    fits: dict[str, Counter[Fit]] = {}
    for run in {identity(run.config): run for pairs in found for _, run in pairs}.values():
        fits.setdefault(run.config.dataset, Counter())[_fit(run, free)] += 1
    most = {dataset: count.most_common(1)[0][0] for dataset, count in fits.items()}
    tables: list[Cells] = []
    for mine, pairs in zip(wanted, found, strict=True):
        tables.append({key: [] for key in mine.values()})
        for key, run in pairs:
            if _fit(run, free) == most[run.config.dataset]:
                tables[-1][key].append(run)
    return tables, [
        line for dataset, count in fits.items() for line in _left_out(dataset, count, free)
    ]


def _left_out(dataset: str, count: Counter[Fit], free: Sequence[str]) -> list[str]:
    """Say of which runs there are fewer, and so none in a table."""
    shown, *others = [fit for fit, _ in count.most_common()]
    return [
        f"Not shown: {counted(count[fit], 'run')} on {dataset} with "
        + ", ".join(
            f"{name.replace('_', ' ')} {own}"
            for name, own, most in zip(free, fit, shown, strict=True)
            if own != most
        )
        + "; a table is of one kind, and --model and --precision choose it."
        for fit in others
    ]


def _signature(of: ComparisonConfig, free: Collection[str]) -> str:
    """Return the identity of a run but for its seed and what is free."""
    base = ComparisonConfig()
    return identity(replace(of, first_seed=0, **{name: getattr(base, name) for name in free}))


def _key(of: ComparisonConfig) -> Key:
    return of.selectors[0], of.partitions[0], of.aggregations[0], float(of.mus[0])


def _fit(result: Result, free: Collection[str]) -> Fit:
    return tuple(getattr(result.config, name) for name in free)


def value(result: Result, quantity: Quantity) -> float:
    """Return what one run says of a quantity."""
    if quantity == "final":
        return float(result.accuracy[-1]) if result.finished else nan
    if quantity == "official":
        return float(result.official[-1]) if result.finished else nan
    first = float(first_at(result.accuracy[:, None], float(quantity))[0])
    return first if not isnan(first) else inf if result.finished else nan


def values(runs: Sequence[Result], quantity: Quantity) -> dict[int, float]:
    """Return what the runs of a cell say, by seed; without what is not known yet."""
    said = {run.config.first_seed: value(run, quantity) for run in runs}
    return {seed: one for seed, one in said.items() if not isnan(one)}


@dataclass(frozen=True)
class Cell:
    """What the seeds say of one quantity, beside the paper's value if it has one; both infinite for never.

    played: the rounds, if they were fewer than the paper's: a later value cannot be compared; pending: runs that have not come
    far enough to say, which tend to be the slow ones.
    """

    values: tuple[float, ...]
    paper: float | None = None
    played: float = inf
    pending: int = 0

    @property
    def reached(self) -> Floats:
        """The finite values."""
        return np.array([one for one in self.values if one < inf])

    @property
    def mean(self) -> float:
        """Mean of those that reached it; nan if none did."""
        return float(self.reached.mean()) if self.reached.size else nan

    @property
    def sd(self) -> float:
        """Standard deviation over seeds; nan for fewer than two."""
        return sd(self.reached)

    @property
    def difference(self) -> float:
        """Ours less the paper's; nan where one of them is missing or never."""
        return self.mean - self.paper if self.paper is not None and self.paper < inf else nan

    @property
    def outside(self) -> bool | None:
        """Whether the paper's value lies outside mean ± 2 sd; None if that cannot be said, as with one seed or some pending.

        A run that never got there makes the spread endless upwards; "never" is outside if every run got there.
        """
        if self.paper is None or len(self.values) < 2 or self.pending or self.paper > self.played:
            return None
        if self.paper == inf:
            return self.reached.size == len(self.values)
        if self.reached.size == 0:
            return True
        if self.reached.size == 1:
            return None
        never = self.reached.size < len(self.values)
        return bool(
            self.paper < self.mean - 2 * self.sd
            or (not never and self.paper > self.mean + 2 * self.sd)
        )
