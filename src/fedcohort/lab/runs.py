"""The runs of a comparison, in the order of the batch axis, and the groups of them."""

from dataclasses import dataclass
from itertools import product
from math import prod

from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import aggregation_labels, partition_labels, selector_labels
from fedcohort.memory import check_memory

BYTES_PER_KEY = 100  # at least, of Python's objects


@dataclass(frozen=True)
class RunKey:
    """Which run a row of the batch axis is."""

    selector: str
    partition: str
    aggregation: str
    mu: float
    seed: int


def count_runs(config: ComparisonConfig) -> int:
    """Return the number of runs of a comparison."""
    axes = (config.selectors, config.partitions, config.aggregations, config.mus)
    return config.seeds * prod(len(axis) for axis in axes)


def run_keys(config: ComparisonConfig) -> list[RunKey]:
    """Return all runs in the order of the batch axis; those of one selector stand together.

    Args:
        config: The comparison.

    Returns:
        One key for each row of the batch axis.

    Raises:
        ValueError: If the keys alone do not fit the memory.

    Examples:
        >>> from fedcohort.lab.config import ComparisonConfig
        >>> config = ComparisonConfig(selectors=("random",), partitions=("iid",), seeds=2)
        >>> [(key.aggregation, key.seed) for key in run_keys(config)]
        [('paper', 0), ('paper', 1), ('normalised', 0), ('normalised', 1)]
    """
    runs = count_runs(config)
    check_memory("seeds", f"{config.seeds} seeds in {runs} runs", runs * BYTES_PER_KEY)
    seeds = range(config.first_seed, config.first_seed + config.seeds)
    axes = (config.selectors, config.partitions, config.aggregations, config.mus, seeds)
    return [RunKey(*values) for values in product(*axes)]


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in selector and seed alone, so that their selectors can be compared.

    Attributes:
        partition: How the samples were dealt, as tables name it.
        aggregation: How updates were averaged, as tables name it.
        mu: FedProx's coefficient.
        shows_mu: Whether the label names mu; it does where a comparison has several.
        rows: Rows of the batch axis by the selector's label, in the order of the seeds.
        seeds: The seeds, in the order of the rows.
    """

    partition: str
    aggregation: str
    mu: float
    shows_mu: bool
    rows: dict[str, list[int]]
    seeds: list[int]

    @property
    def label(self) -> str:
        """The one name of a group in tables, figures and pages."""
        return group_label(self.partition, self.aggregation, self.mu if self.shows_mu else None)


def group_label(partition: str, aggregation: str, mu: float | None = None) -> str:
    """Return the name of a group of runs; None leaves mu out.

    Examples:
        >>> group_label("iid", "paper", 0.5)
        'iid data, paper rule, mu 0.5'
    """
    label = f"{partition} data, {aggregation} rule"
    return label if mu is None else f"{label}, mu {mu:g}"


def run_groups(config: ComparisonConfig) -> list[RunGroup]:
    """Return the groups of a comparison's runs: one per partition, aggregation and mu."""
    selectors = selector_labels(config)
    aggregations = aggregation_labels(config)
    partitions = partition_labels(config)
    rows: dict[tuple[str, str, float], dict[str, list[int]]] = {}
    for row, key in enumerate(run_keys(config)):
        by_selector = rows.setdefault((key.partition, key.aggregation, key.mu), {})
        by_selector.setdefault(selectors[key.selector], []).append(row)

    groups = []
    for partition, aggregation, mu in product(config.partitions, config.aggregations, config.mus):
        group = RunGroup(
            partitions[partition],
            aggregations[aggregation],
            mu,
            shows_mu=len(config.mus) > 1,
            rows=rows[partition, aggregation, mu],
            seeds=list(range(config.first_seed, config.first_seed + config.seeds)),
        )
        groups.append(group)
    return groups
