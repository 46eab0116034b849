"""All measures of every combination, for programs: the rows of combinations.csv."""

from collections.abc import Mapping, Sequence
from math import exp, nan

import numpy as np

from fedcohort.study.analysis import Combination, Difference
from fedcohort.study.measures import Row
from fedcohort.study.tables import Place, values_by_combination
from fedcohort.study.targets import COSTS, compare_costs
from fedcohort.study.volatility import BASELINE

# The columns of combinations.csv by measure. Tables of runs made before wasted work was measured
# have `wasted_share`: it divides by the most seconds that clients could spend, so it is a bound.
FIGURES = {
    "final": "final",
    "rounds_to_target": "rounds_to_target",
    "client_steps_to_target": "client_steps_to_target",
    "seconds_to_target": "seconds_to_target",
    "worst_class": "worst_class",
    "worst_label": "worst_label",
    "success": "success",
    "wasted_work_share": "wasted_work_share",
    "wasted_share": "wasted_share_at_least",
    "megabytes": "megabytes",
    "memory_megabytes": "memory_megabytes",
}
SAME = Difference(0.0, 0.0, 0.0, 1.0)  # the baseline beside itself
UNKNOWN = Difference(nan, nan, nan, nan)


def combination_rows(
    places: Mapping[Place, Sequence[Row]],
    differences: Mapping[Place, Mapping[Combination, Difference]],
) -> list[Row]:
    """Return mean and spread of every measure, and what is compared with the baseline.

    Args:
        places: The runs of each place.
        differences: Differences in final accuracy from the baseline, by place and combination.
    """
    rows = []
    measured = measured_figures(places)
    for place, own in places.items():
        measures = {name: values_by_combination(own, name) for name in measured}
        costs = {name: compare_costs(measures[name]) for name in COSTS}
        for combination in measures["final"]:
            row: Row = dict(zip(("dataset", "world", "partition"), place, strict=True))
            row |= dict(zip(("selector", "rule"), combination, strict=True))
            row["seeds"] = len(measures["final"][combination])
            reached = np.isfinite(measures["rounds_to_target"][combination])
            row["seeds_at_target"] = int(reached.sum())
            for name, values in measures.items():
                row[FIGURES[name]] = f"{float(np.mean(values[combination])):.6g}"
                spread = float(np.std(values[combination], ddof=1))
                row[f"{FIGURES[name]}_sd"] = f"{spread:.6g}"
            row |= _final_cells(differences[place].get(combination, SAME))
            for name, compared in costs.items():
                row |= _ratio_cells(name.removesuffix("_to_target"), combination, compared)
            rows.append(row)
    return rows


def measured_figures(places: Mapping[Place, Sequence[Row]]) -> list[str]:
    """Return the measures that some run has; older tables have others than new ones."""
    names: set[str] = set()
    for rows in places.values():
        names.update(rows[0])
    return [name for name in FIGURES if name in names]


def _final_cells(difference: Difference) -> Row:
    return {
        "final_difference": f"{difference.mean:.6g}",
        "low": f"{difference.low:.6g}",
        "high": f"{difference.high:.6g}",
        "p_value": f"{difference.p_value:.3g}",
    }


def _ratio_cells(
    cost: str, combination: Combination, differences: Mapping[Combination, Difference]
) -> Row:
    """Return a cost beside the baseline's as a ratio; nan where there is nothing to compare."""
    found = differences.get(combination, UNKNOWN)
    if combination == BASELINE and differences:
        found = SAME
    return {
        f"{cost}_ratio": f"{exp(found.mean):.6g}",
        f"{cost}_ratio_low": f"{exp(found.low):.6g}",
        f"{cost}_ratio_high": f"{exp(found.high):.6g}",
        f"{cost}_ratio_p_value": f"{found.p_value:.3g}",
    }
