"""What it costs to reach the target accuracy: rounds, client steps and virtual seconds."""

from collections.abc import Mapping, Sequence
from math import exp

import numpy as np

from fedcohort.study.analysis import Combination, Difference, compare_with
from fedcohort.study.measures import Row
from fedcohort.study.tables import RECIPE, Place, label, place_in_words, values_by_combination
from fedcohort.study.volatility import BASELINE

COSTS = {  # titles of the tables, by measure
    "rounds_to_target": "Rounds to the target accuracy, as a ratio",
    "client_steps_to_target": "Client steps to the target accuracy, as a ratio",
    "seconds_to_target": "Virtual seconds to the target accuracy, as a ratio",
}
SHOWN: tuple[Combination, ...] = (
    RECIPE,
    ("random", "fedvarp"),
    ("f3ast", "fedvarp"),
    ("random", "mifa"),
    ("e3cs-0.5", "normalised"),
    ("e3cs-0.5", "paper"),
)
NOT_RUN = "-"
NEVER = "never"


def compare_costs(costs: Mapping[Combination, Sequence[float]]) -> dict[Combination, Difference]:
    """Compare the logarithms of a cost with the baseline's.

    Combinations that miss the target with some seed are left out. Nothing is compared if the
    baseline is one of them.

    Args:
        costs: One cost per seed by combination, nan where the target was missed.

    Returns:
        The differences of logarithms. Empty if there is nothing to compare.
    """
    logs = {}
    for name, values in costs.items():
        if all(value > 0 for value in values):  # nan is not above 0
            logs[name] = np.log(values).tolist()
    if BASELINE not in logs or len(logs) < 2:
        return {}
    return compare_with(BASELINE, logs)


def cost_row(place: Place, rows: Sequence[Row], measure: str) -> Row:
    """Return what the target costs the baseline, and some others as a multiple of that.

    Args:
        place: Data set, world and partition.
        rows: The runs of the place.
        measure: A key of `COSTS`.
    """
    costs = values_by_combination(rows, measure)
    differences = compare_costs(costs)
    row: Row = {**place_in_words(place), "target, %": f"{100 * rows[0]['target']:g}"}
    row[label(BASELINE)] = _geometric_mean(costs[BASELINE])
    for name in SHOWN:
        if name in differences:
            row[label(name)] = _ratio(differences[name])
        else:
            row[label(name)] = seeds_at_target(costs.get(name, ()))
    return row


def seeds_at_target(costs: Sequence[float]) -> str:
    """Say how many seeds reached the target.

    Args:
        costs: One cost per seed, nan where the target was missed; empty if nothing was run.

    Examples:
        >>> seeds_at_target([24.0, float("nan"), 50.0]), seeds_at_target([float("nan")])
        ('2 of 3', 'never')
    """
    if not costs:
        return NOT_RUN
    reached = len(costs) - int(np.isnan(costs).sum())
    if not reached:
        return NEVER
    return f"{reached} of {len(costs)}"


def _geometric_mean(costs: Sequence[float]) -> str:
    """Return the geometric mean over seeds, or how many of them reached the target."""
    if np.isnan(costs).any():
        return seeds_at_target(costs)
    return f"{float(np.exp(np.mean(np.log(costs)))):,.0f}"


def _ratio(difference: Difference) -> str:
    """Return a difference of logarithms as a ratio; a star marks one that holds."""
    ratio = f"{exp(difference.mean):.2f}"
    if not difference.has_interval:
        return ratio
    star = "*" if difference.holds else ""
    return f"{ratio}{star} [{exp(difference.low):.2f}, {exp(difference.high):.2f}]"
