"""The tables of the study: each function returns one row, or the rows of one table."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.study.analysis import (
    Combination,
    Difference,
    best_group,
    compare_rules,
    compare_with,
)
from fedcohort.study.measures import Row
from fedcohort.study.volatility import BASELINE, PARTITION_NAMES, WORLD_NAMES

Place = tuple[str, str, str]  # data set, world and partition
RECIPE: Combination = ("age", "fedvarp")
OVERVIEW: tuple[Combination, ...] = (
    ("random", "fedvarp"),
    ("random", "mifa"),
    ("f3ast", "mifa"),
    RECIPE,
    ("e3cs-0.5", "normalised"),
    ("e3cs-inc", "normalised"),
    ("f3ast", "normalised"),
    ("age", "normalised"),
    ("fedcs", "normalised"),
    ("oort", "normalised"),
    ("random", "inverse-normalised"),
    ("random", "fedau"),
    ("random", "paper"),
    ("e3cs-0.5", "paper"),
)


def by_place(rows: Sequence[Row]) -> dict[Place, list[Row]]:
    """Return the rows of each data set, world and partition."""
    places: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        places[row["dataset"], row["world"], row["partition"]].append(row)
    return dict(places)


def values_by_combination(rows: Sequence[Row], name: str) -> dict[Combination, list[float]]:
    """Return one value per seed, in the order of the seeds, by combination."""
    values: dict[Combination, list[float]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["seed"]):
        values[row["selector"], row["rule"]].append(float(row[name]))
    return dict(values)


def place_in_words(place: Place) -> dict[str, str]:
    """Return the first cells of a row: data set, world and partition."""
    dataset, world, partition = place
    return {
        "data": dataset,
        "world": WORLD_NAMES[world],
        "partition": PARTITION_NAMES[partition],
    }


def label(combination: Combination) -> str:
    """Return the name of a combination in tables and figures."""
    return " + ".join(combination)


def _percent(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):.1f}"


def _points(difference: Difference | None) -> str:
    """Return a difference in points with its interval; a star marks one that holds."""
    if difference is None:
        return "-"
    mean = f"{100 * difference.mean:+.1f}"
    if not difference.has_interval:
        return mean
    star = "*" if difference.holds else ""
    low, high = 100 * difference.low, 100 * difference.high
    return f"{mean}{star} [{low:+.1f}, {high:+.1f}]"


def overview_rows(
    partition: str, differences: Mapping[Place, Mapping[Combination, Difference]]
) -> list[Row]:
    """Return how some combinations compare with the baseline over all cases of a partition."""
    rows = []
    for combination in OVERVIEW:
        found = []
        for place, own in differences.items():
            if place[2] == partition and combination in own:
                found.append(own[combination])
        if not found:
            continue
        points = [100 * difference.mean for difference in found]
        decided = [difference.mean for difference in found if difference.holds]
        rows.append(
            {
                "partition": PARTITION_NAMES[partition],
                "combination": label(combination),
                "cases": len(found),
                "mean, points": f"{float(np.mean(points)):+.1f}",
                "lowest": f"{min(points):+.1f}",
                "highest": f"{max(points):+.1f}",
                "ahead": sum(mean > 0 for mean in decided),
                "behind": sum(mean < 0 for mean in decided),
            }
        )
    return rows


def mean_rows(
    partition: str, differences: Mapping[Place, Mapping[Combination, Difference]]
) -> list[Row]:
    """Return the mean difference of every rule with uniform selection, by data set."""
    points: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (dataset, _, own_partition), own in differences.items():
        for (selector, rule), difference in own.items():
            if own_partition == partition and selector == BASELINE[0]:
                points[rule][dataset].append(100 * difference.mean)
    rows = []
    for rule, by_dataset in points.items():
        row: Row = {"partition": PARTITION_NAMES[partition], "rule": rule}
        for dataset, values in by_dataset.items():
            row[dataset] = f"{float(np.mean(values)):+.1f}"
        rows.append(row)
    return rows


def summary_row(
    place: Place,
    finals: Mapping[Combination, list[float]],
    differences: Mapping[Combination, Difference],
) -> Row:
    """Return the best combinations of a place, and the recipe beside the baseline."""
    group = best_group(finals)
    row: Row = {
        **place_in_words(place),
        label(BASELINE): _percent(finals[BASELINE]),
        f"{label(RECIPE)}, points": _points(differences.get(RECIPE)),
        "best": f"{label(group[0])} {_percent(finals[group[0]])}",
        "not told from the best": len(group) - 1,
        "best under the paper's rule": "-",
    }
    under_paper = [name for name in finals if name[1] == "paper"]
    if under_paper:
        best = max(under_paper, key=lambda name: float(np.mean(finals[name])))
        row["best under the paper's rule"] = f"{best[0]} {_percent(finals[best])}"
    return row


def average_rule_row(place: Place, finals: Mapping[Combination, list[float]]) -> Row:
    """Return every rule beside the baseline's, averaged over all selectors."""
    return _points_row(place, compare_rules(BASELINE[1], finals))


def rule_row(place: Place, differences: Mapping[Combination, Difference]) -> Row:
    """Return every rule beside the baseline's, with uniform selection."""
    own = {rule: found for (name, rule), found in differences.items() if name == BASELINE[0]}
    return _points_row(place, own)


def selector_row(place: Place, differences: Mapping[Combination, Difference]) -> Row:
    """Return every selector beside uniform selection, with normalised averaging."""
    own = {name: found for (name, rule), found in differences.items() if rule == BASELINE[1]}
    return _points_row(place, own)


def _points_row(place: Place, differences: Mapping[str, Difference]) -> Row:
    row: Row = dict(place_in_words(place))
    for name, difference in differences.items():
        row[name] = _points(difference)
    return row


def worst_row(place: Place, worst: Mapping[Combination, list[float]]) -> Row:
    """Return the accuracy of the worst class of clients, for some combinations."""
    row: Row = dict(place_in_words(place))
    differences = compare_with(BASELINE, worst)
    row[label(BASELINE)] = _percent(worst[BASELINE])
    for name in (("random", "fedvarp"), RECIPE, ("fedcs", "normalised")):
        row[f"{label(name)}, points"] = _points(differences.get(name))
    return row
