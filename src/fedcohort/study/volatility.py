"""The study `volatility`: which selector and which rule help when clients fail, and where.

Every combination of selector and rule plays every world, on non-iid and on iid data, with the same
seeds and the same learning rate. The rates of digits and CIFAR-10 were the best of a few for the
baseline, uniform selection with normalised averaging, so that no other combination is favoured. The
pilot that chose them kept no record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fedcohort.checks import check_choice
from fedcohort.lab.config import ComparisonConfig

SELECTORS = ("random", "age", "e3cs-0.5", "e3cs-inc", "fedcs", "oort", "f3ast")
RULES = ("paper", "normalised", "inverse-normalised", "fedau", "mifa", "fedvarp")
WORLDS = ("bernoulli", "labels", "markov", "groups")
PARTITIONS = ("primary-label", "iid")
BASELINE = ("random", "normalised")

WORLD_NAMES = {
    "bernoulli": "the paper's failures",
    "labels": "failures follow the labels",
    "markov": "failures last",
    "groups": "groups fail together",
}
PARTITION_NAMES = {"primary-label": "non-iid", "iid": "iid"}

TASKS: dict[str, dict[str, Any]] = {
    "digits": {
        "model": "mlp",
        "clients": 36,
        "cohort": 7,
        "samples_per_client": 49,
        "rounds": 120,
        "batch_size": 10,
        "learning_rate": 0.05,
        "targets": (0.85,),
        "seeds": 5,
    },
    "fashion-mnist": {
        "model": "mlp",
        "clients": 100,
        "cohort": 20,
        "samples_per_client": 100,
        "rounds": 100,
        "batch_size": 10,
        "learning_rate": 0.02,
        "targets": (0.7,),
        "seeds": 5,
        "evaluate_every": 5,
    },
    "cifar10": {
        "model": "cifar-cnn",
        "clients": 100,
        "cohort": 20,
        "samples_per_client": 500,
        "refill": True,
        "rounds": 120,
        "batch_size": 40,
        "learning_rate": 0.03,
        "targets": (0.5,),
        "seeds": 3,
        "evaluate_every": 5,
    },
}


@dataclass(frozen=True)
class Block:
    """Runs that are compared with each other: one data set, world and partition.

    Attributes:
        task: A name in TASKS.
        world: A name in WORLDS.
        partition: A name in PARTITIONS.
        config: The comparison of all selectors and rules.
    """

    task: str
    world: str
    partition: str
    config: ComparisonConfig

    @property
    def folder(self) -> str:
        """Name of the folder of its runs."""
        return f"{self.task}-{self.world}-{self.partition}"


def blocks(
    tasks: Sequence[str] = tuple(TASKS),
    worlds: Sequence[str] = WORLDS,
    partitions: Sequence[str] = PARTITIONS,
    **overrides: Any,
) -> Iterator[Block]:
    """Yield the blocks of the study.

    Args:
        tasks: Names in TASKS.
        worlds: Names in WORLDS.
        partitions: Names in PARTITIONS.
        **overrides: Fields of `ComparisonConfig` that differ from the study's.

    Raises:
        ValueError: If a name is unknown, or a setting is not allowed.
    """
    for task in tasks:
        check_choice("dataset", task, TASKS)
        for world in worlds:
            check_choice("world", world, WORLDS)
            for partition in partitions:
                check_choice("partition", partition, PARTITIONS)
                settings: dict[str, Any] = {
                    "dataset": task,
                    "selectors": SELECTORS,
                    "aggregations": RULES,
                    "partitions": (partition,),
                    "world": world,
                    **TASKS[task],
                    **overrides,
                }
                # The memory of updates is large, and a block is short.
                settings.setdefault("checkpoint_every", settings["rounds"])
                config = ComparisonConfig.from_dict(settings)
                _check_comparable(config)
                yield Block(task, world, partition, config)


def _check_comparable(config: ComparisonConfig) -> None:
    """Refuse runs that could not be compared: no baseline, nothing beside it, or one seed."""
    selector, rule = BASELINE
    if selector not in config.selectors:
        raise ValueError(f"selectors must contain {selector!r}, got {config.selectors}")
    if rule not in config.aggregations:
        raise ValueError(f"aggregations must contain {rule!r}, got {config.aggregations}")
    if len(config.selectors) * len(config.aggregations) < 2:
        raise ValueError("selectors and aggregations must be more than the baseline, got it alone")
    if config.seeds < 2:
        raise ValueError(f"seeds must be at least 2, got {config.seeds}")
