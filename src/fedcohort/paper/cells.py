"""The cells of a table: the runs of one scheme over seeds, and what they say together.

A run says a number about each quantity. The number is infinite where the run never reached
an accuracy, and nan where an unfinished run has not come that far yet.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan, sqrt

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result, identity, single_run
from fedcohort.lab.runs import run_keys
from fedcohort.metrics import first_at
from fedcohort.reports.words import counted
from fedcohort.statistics import sd
from fedcohort.students_t import t_quantile

# A target accuracy means the first round that reaches it; "final" and "official" mean the
# accuracy in the last round, on the clients' reserved data and on the official test set.
Quantity = float | str
CellKey = tuple[str, str, str, float]  # selector, partition, aggregation, mu
Cells = dict[CellKey, list[Result]]

# Runs that differ in these fields are never mixed in one table.
VARIANT_FIELDS = ("model", "samples_per_client", "precision")
Variant = tuple[object, ...]  # the values of the variant fields that were not asked for


def collect_cells(
    runs: Iterable[Result], configs: Sequence[ComparisonConfig], exact: Collection[str] = ()
) -> tuple[list[Cells], list[str]]:
    """Sort runs into the cells of comparisons, with all seeds that there are.

    Comparisons that are asked for together are shown beside each other, so their runs must
    be alike. A variant field that is not in `exact` takes the value that most of the runs
    on a data set have, the same in all comparisons.

    Args:
        runs: All runs at hand.
        configs: The comparisons.
        exact: Variant fields whose values must be those of the configs.

    Returns:
        One dictionary of cells per config, where a cell without runs is empty, and notes on
        the runs that were left out.
    """
    free = [name for name in VARIANT_FIELDS if name not in exact]
    in_order = sorted(runs, key=lambda run: run.config.first_seed)

    wanted = []
    matches = []
    for config in configs:
        keys = _keys_by_signature(config, free)
        wanted.append(keys)
        matches.append(_matching_runs(in_order, keys, free))

    variants = _count_variants(matches, free)
    tables: list[Cells] = []
    for keys, matching in zip(wanted, matches, strict=True):
        cells: Cells = {key: [] for key in keys.values()}
        for key, run in matching:
            if _variant(run, free) == _commonest(variants[run.config.dataset]):
                cells[key].append(run)
        tables.append(cells)

    notes = []
    for dataset, counts in variants.items():
        notes += _notes_on_others(dataset, counts, free)
    return tables, notes


def _keys_by_signature(config: ComparisonConfig, free: Collection[str]) -> dict[str, CellKey]:
    """Return the cell key of every run of a comparison, by the signature of the run."""
    keys = {}
    for run_key in run_keys(config):
        single = single_run(config, run_key)
        cell = (run_key.selector, run_key.partition, run_key.aggregation, float(run_key.mu))
        keys[_signature(single, free)] = cell
    return keys


def _signature(config: ComparisonConfig, free: Collection[str]) -> str:
    """Return the identity of a run without its seed and its free fields."""
    default = ComparisonConfig()
    neutral = {name: getattr(default, name) for name in free}
    return identity(replace(config, first_seed=0, **neutral))


def _matching_runs(
    runs: Iterable[Result], keys: Mapping[str, CellKey], free: Collection[str]
) -> list[tuple[CellKey, Result]]:
    matching = []
    for run in runs:
        signature = _signature(run.config, free)
        if signature in keys:
            matching.append((keys[signature], run))
    return matching


def _count_variants(
    matches: Iterable[list[tuple[CellKey, Result]]], free: Collection[str]
) -> dict[str, Counter[Variant]]:
    """Count the runs of each variant by data set; a run in two comparisons counts once."""
    different: dict[str, Result] = {}
    for matching in matches:
        for _, run in matching:
            different[identity(run.config)] = run
    counts: dict[str, Counter[Variant]] = {}
    for run in different.values():
        counts.setdefault(run.config.dataset, Counter())[_variant(run, free)] += 1
    return counts


def _variant(run: Result, free: Collection[str]) -> Variant:
    return tuple(getattr(run.config, name) for name in free)


def _commonest(counts: Counter[Variant]) -> Variant:
    return counts.most_common(1)[0][0]


def _notes_on_others(dataset: str, counts: Counter[Variant], free: Sequence[str]) -> list[str]:
    """Say which variants have fewer runs and are therefore not shown."""
    shown = _commonest(counts)
    notes = []
    for variant, count in counts.most_common()[1:]:
        differences = []
        for name, value, shown_value in zip(free, variant, shown, strict=True):
            if value != shown_value:
                differences.append(f"{name.replace('_', ' ')} {value}")
        notes.append(
            f"Not shown: {counted(count, 'run')} on {dataset} with {', '.join(differences)}. "
            "A table shows one kind of run; choose it with --model and --precision."
        )
    return notes


def run_value(run: Result, quantity: Quantity) -> float:
    """Return what one run says about a quantity.

    Args:
        run: The run.
        quantity: A target accuracy, "final" or "official".

    Returns:
        A round or an accuracy; infinite if a finished run never reached the target, nan if
        an unfinished run does not say yet.
    """
    if quantity in ("final", "official") and not run.finished:
        return nan
    if quantity == "final":
        return float(run.accuracy[-1])
    if quantity == "official":
        return float(run.official[-1])
    first = float(first_at(run.accuracy[:, None], float(quantity))[0])
    if isnan(first) and run.finished:
        return inf
    return first


def values_by_seed(runs: Sequence[Result], quantity: Quantity) -> dict[int, float]:
    """Return what the runs of a cell say, by seed, without what is not known yet."""
    values = {}
    for run in runs:
        value = run_value(run, quantity)
        if not isnan(value):
            values[run.config.first_seed] = value
    return values


@dataclass(frozen=True)
class Cell:
    """What the seeds say about one quantity, beside the paper's value.

    Attributes:
        values: One value per seed; infinite for never.
        paper: The paper's value, infinite for never; None if it has none to compare with.
        rounds_played: Our number of rounds if it is below the paper's, otherwise infinite.
            A value of the paper beyond it cannot be compared.
        pending: Number of runs that have not come far enough. They tend to be slow ones.
        seeds: The seeds of the values, in their order.
    """

    values: tuple[float, ...]
    paper: float | None = None
    rounds_played: float = inf
    pending: int = 0
    seeds: tuple[int, ...] = ()

    @property
    def reached(self) -> Floats:
        """The finite values."""
        return np.array([value for value in self.values if value < inf])

    @property
    def mean(self) -> float:
        """Mean of the finite values; nan if there are none."""
        if not self.reached.size:
            return nan
        return float(self.reached.mean())

    @property
    def sd(self) -> float:
        """Standard deviation over seeds; nan for fewer than two."""
        return sd(self.reached)

    @property
    def difference(self) -> float:
        """Our mean less the paper's value; nan where one of them is missing or never."""
        if self.paper is None or self.paper == inf:
            return nan
        return self.mean - self.paper

    @property
    def outside(self) -> bool | None:
        """Whether the paper's value lies outside what one more run would give; None if unknown.

        The limits are those of the 95 % prediction interval, mean ± t·sd·√(1 + 1/n). Nobody can
        tell from one seed or while runs are pending. A run that never reached the target leaves
        no upper limit. The paper's "never" is outside if all runs reached it.
        """
        if self.paper is None or len(self.values) < 2 or self.pending:
            return None
        if self.paper > self.rounds_played:
            return None
        if self.paper == inf:
            return self.reached.size == len(self.values)
        if self.reached.size == 0:
            return True
        if self.reached.size == 1:
            return None
        margin = prediction_factor(self.reached.size, self.reached.size - 1) * self.sd
        if self.paper < self.mean - margin:
            return True
        all_reached = self.reached.size == len(self.values)
        return all_reached and bool(self.paper > self.mean + margin)


def prediction_factor(runs: int, degrees: float) -> float:
    """Return the half-width of a 95 % prediction interval for one more run, in sd.

    Args:
        runs: Number of runs that the mean is taken over.
        degrees: Degrees of freedom of the sd.

    Examples:
        >>> round(prediction_factor(2, 1), 1)
        15.6
    """
    return t_quantile(0.975, degrees) * sqrt(1 + 1 / runs)
