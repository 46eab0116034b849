"""The benchmark suite: figures of one run on one machine, medians with spread, ratios rather than promises."""

from collections.abc import Callable

from fedcohort.bench.machine import Row
from fedcohort.bench.selection import selection


def learning(quick: bool = False) -> tuple[list[Row], str]:
    """Measure local updates; PyTorch is loaded here, not before."""
    from fedcohort.bench.learning import learning as measure

    return measure(quick)


def flower(quick: bool = False) -> tuple[list[Row], str]:
    """Measure rounds on Flower beside its own FedAvg; Flower is loaded here, not before."""
    from fedcohort.bench.flower import flower as measure

    return measure(quick)


BENCHES: dict[str, Callable[[bool], tuple[list[Row], str]]] = {
    "selection": selection,
    "learning": learning,
    "flower": flower,
}
