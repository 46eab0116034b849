"""The benchmark suite: what this machine measures, as medians with quartiles.

Ratios compare measurements that took turns in the same run. A benchmark is a function of
`quick`, whether to measure briefly, that returns the rows of a table and a description of the
machine.
"""

from collections.abc import Callable

from fedcohort.bench.measurement import Row
from fedcohort.bench.selection import measure_selection

Benchmark = Callable[[bool], tuple[list[Row], str]]


def _measure_learning(quick: bool) -> tuple[list[Row], str]:
    # Imported here, not at the top: the other benchmarks must not load PyTorch.
    from fedcohort.bench.learning import measure_learning

    return measure_learning(quick)


BENCHES: dict[str, Benchmark] = {
    "selection": measure_selection,
    "learning": _measure_learning,
}
