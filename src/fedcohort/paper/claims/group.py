"""Groups of trained runs that claims compare schemes in."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fedcohort.paper.labels import partition_label, update_label
from fedcohort.paper.setting import PAPER, TASKS


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but scheme and world.

    Attributes:
        task: A key of `TASKS`.
        partition: How samples are split among clients.
        mu: Weight of FedProx; 0 is FedAvg.
        cohort: Clients asked per round, k.
    """

    task: str
    partition: str
    mu: float
    cohort: int = 20

    def accuracy(self, target: int) -> float:
        """Return a target accuracy of the task; target 0 is the lowest."""
        return float(TASKS[self.task]["targets"][target])

    def __str__(self) -> str:
        """Return the group in words.

        Examples:
            >>> print(Group("cifar10", "iid", 0.0, cohort=30))
            iid, FedAvg, k=30
        """
        words = f"{partition_label(self.partition)}, {update_label(self.mu)}"
        if self.cohort != 20:
            words += f", k={self.cohort}"
        return words


def groups_of(task: str, cohort: int = 20) -> Iterator[Group]:
    """Yield the groups of a task: each partition of the paper with FedAvg and with FedProx."""
    for partition, mu in product(PAPER["partitions"], PAPER["mus"]):
        yield Group(task, partition, mu, cohort)
