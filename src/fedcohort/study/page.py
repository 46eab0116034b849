"""The answer of a study: tables, figures and sentences, from the rows of its runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.reports.charts.specification import Axis, Chart, Layout, Line, Panel, Series
from fedcohort.reports.palette import Style
from fedcohort.reports.report import Report
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
    ("f3ast", "normalised"),
    ("age", "normalised"),
    ("fedcs", "normalised"),
    ("oort", "normalised"),
    ("random", "inverse-normalised"),
    ("random", "fedau"),
    ("random", "paper"),
    ("e3cs-0.5", "paper"),
)
TIMED: tuple[Combination, ...] = (
    RECIPE,
    ("random", "fedvarp"),
    ("f3ast", "fedvarp"),
    ("random", "mifa"),
    ("e3cs-0.5", "normalised"),
    ("e3cs-0.5", "paper"),
)
FIGURES = (
    "final",
    "rounds_to_target",
    "client_steps_to_target",
    "seconds_to_target",
    "worst_class",
    "worst_label",
    "success",
    "wasted_share",
    "megabytes",
    "memory_megabytes",
)


def make_report(rows: Sequence[Row], curves: Sequence[Row]) -> Report:
    """Return the report of the study `volatility`.

    Args:
        rows: One row per run.
        curves: Rows of the kept accuracy curves.
    """
    places = _by_place(rows)
    finals = {place: _values(own, "final") for place, own in places.items()}
    differences = {place: compare_with(BASELINE, own) for place, own in finals.items()}
    return Report(
        name="volatility",
        title="What helps when clients fail",
        tables={
            "Final accuracy beside uniform selection with normalised averaging": [
                *_overview_rows("primary-label", differences),
                *_overview_rows("iid", differences),
            ],
            "Final accuracy, by data, world and partition": [
                _summary_row(place, finals[place], differences[place]) for place in places
            ],
            "Rounds to the target accuracy, as a ratio": [
                _rounds_row(place, own) for place, own in places.items()
            ],
            "Every rule beside normalised averaging, averaged over all selectors": [
                _average_rule_row(place, finals[place]) for place in places
            ],
            "Every rule beside normalised averaging, both with uniform selection": [
                _rule_row(place, finals[place], differences[place]) for place in places
            ],
            "Every selector beside uniform selection, both with normalised averaging": [
                _selector_row(place, finals[place], differences[place]) for place in places
            ],
            "Worst class of clients": [
                _worst_row(place, _values(own, "worst_class")) for place, own in places.items()
            ],
        },
        notes=_notes(places),
        numbers={"combinations": _combination_rows(places, differences)},
        figures=_charts(curves),
    )


def _by_place(rows: Sequence[Row]) -> dict[Place, list[Row]]:
    places: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        places[row["dataset"], row["world"], row["partition"]].append(row)
    return dict(places)


def _values(rows: Sequence[Row], name: str) -> dict[Combination, list[float]]:
    """Return one value per seed, in the order of the seeds, by combination."""
    values: dict[Combination, list[float]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["seed"]):
        values[row["selector"], row["rule"]].append(float(row[name]))
    return dict(values)


def _words(place: Place) -> dict[str, str]:
    dataset, world, partition = place
    return {
        "data": dataset,
        "world": WORLD_NAMES[world],
        "partition": PARTITION_NAMES[partition],
    }


def _label(combination: Combination) -> str:
    return " + ".join(combination)


def _percent(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):.1f}"


def _points(difference: Difference | None) -> str:
    """Return a difference in points with its interval; a star marks one that holds."""
    if difference is None:
        return "0"
    star = "*" if difference.holds else ""
    low, high = 100 * difference.low, 100 * difference.high
    return f"{100 * difference.mean:+.1f}{star} [{low:+.1f}, {high:+.1f}]"


def _overview_rows(
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
                "combination": _label(combination),
                "cases": len(found),
                "mean, points": f"{float(np.mean(points)):+.1f}",
                "lowest": f"{min(points):+.1f}",
                "highest": f"{max(points):+.1f}",
                "ahead": sum(mean > 0 for mean in decided),
                "behind": sum(mean < 0 for mean in decided),
            }
        )
    return rows


def _summary_row(
    place: Place,
    finals: Mapping[Combination, list[float]],
    differences: Mapping[Combination, Difference],
) -> Row:
    under_paper = [name for name in finals if name[1] == "paper"]
    best_of_paper = max(under_paper, key=lambda name: float(np.mean(finals[name])))
    group = best_group(finals)
    return {
        **_words(place),
        _label(BASELINE): _percent(finals[BASELINE]),
        f"{_label(RECIPE)}, points": _points(differences[RECIPE]),
        "best": f"{_label(group[0])} {_percent(finals[group[0]])}",
        "not told from the best": len(group) - 1,
        "best under the paper's rule": f"{best_of_paper[0]} {_percent(finals[best_of_paper])}",
    }


def _rounds_row(place: Place, rows: Sequence[Row]) -> Row:
    """Return how many rounds the baseline needs, and others as a multiple of that.

    Combinations that miss the target with some seed are left out of the comparison.
    """
    logs = {}
    for name, rounds in _values(rows, "rounds_to_target").items():
        if not np.isnan(rounds).any():
            logs[name] = np.log(rounds).tolist()
    row: Row = {**_words(place), "target, %": f"{100 * rows[0]['target']:g}"}
    if BASELINE not in logs or len(logs) < 2:
        return row | {_label(BASELINE): "never"} | dict.fromkeys(map(_label, TIMED), "-")
    row[_label(BASELINE)] = f"{float(np.exp(np.mean(logs[BASELINE]))):.0f}"
    differences = compare_with(BASELINE, logs)
    for name in TIMED:
        row[_label(name)] = _ratio(differences[name]) if name in differences else "never"
    return row


def _ratio(difference: Difference) -> str:
    """Return a difference of logarithms as a ratio; a star marks one that holds."""
    star = "*" if difference.holds else ""
    low, high = np.exp([difference.low, difference.high])
    return f"{float(np.exp(difference.mean)):.2f}{star} [{low:.2f}, {high:.2f}]"


def _average_rule_row(place: Place, finals: Mapping[Combination, list[float]]) -> Row:
    row: Row = dict(_words(place))
    for rule, difference in compare_rules(BASELINE[1], finals).items():
        row[rule] = _points(difference)
    return row


def _rule_row(
    place: Place,
    finals: Mapping[Combination, list[float]],
    differences: Mapping[Combination, Difference],
) -> Row:
    row: Row = dict(_words(place))
    for selector, rule in finals:
        if selector == BASELINE[0] and rule != BASELINE[1]:
            row[rule] = _points(differences[selector, rule])
    return row


def _selector_row(
    place: Place,
    finals: Mapping[Combination, list[float]],
    differences: Mapping[Combination, Difference],
) -> Row:
    row: Row = dict(_words(place))
    for selector, rule in finals:
        if rule == BASELINE[1] and selector != BASELINE[0]:
            row[selector] = _points(differences[selector, rule])
    return row


def _worst_row(place: Place, worst: Mapping[Combination, list[float]]) -> Row:
    row: Row = dict(_words(place))
    differences = compare_with(BASELINE, worst)
    row[_label(BASELINE)] = _percent(worst[BASELINE])
    for name in (("random", "fedvarp"), RECIPE, ("fedcs", "normalised")):
        row[f"{_label(name)}, points"] = _points(differences[name])
    return row


def _combination_rows(
    places: Mapping[Place, Sequence[Row]],
    differences: Mapping[Place, Mapping[Combination, Difference]],
) -> list[Row]:
    """Return the mean of every measure and the difference in final accuracy, for programs."""
    rows = []
    for place, own in places.items():
        measures = {name: _values(own, name) for name in FIGURES}
        for selector, rule in measures["final"]:
            row: Row = dict(zip(("dataset", "world", "partition"), place, strict=True))
            row |= {"selector": selector, "rule": rule}
            for name, values in measures.items():
                row[name] = f"{float(np.mean(values[selector, rule])):.6g}"
            difference = differences[place].get((selector, rule), Difference(0, 0, 0, 1.0))
            row["final_difference"] = f"{difference.mean:.6g}"
            row["low"] = f"{difference.low:.6g}"
            row["high"] = f"{difference.high:.6g}"
            row["p_value"] = f"{difference.p_value:.3g}"
            rows.append(row)
    return rows


def _notes(places: Mapping[Place, Sequence[Row]]) -> list[str]:
    notes = [
        "Final accuracy is the mean of the last tenth of the rounds, in percent, and points are "
        f"differences from {_label(BASELINE)}, with 95 % intervals. A star marks a difference "
        "that holds at the 5 % level after Holm's correction for all combinations of its row's "
        "data, world and partition. Runs are paired by seed; the noise is pooled over all "
        "combinations of a block that have the same rule."
    ]
    seeds: dict[str, set[float]] = defaultdict(set)
    for (dataset, _, _), own in places.items():
        seeds[dataset] |= {row["seed"] for row in own}
    counts = ", ".join(f"{dataset} {len(own)}" for dataset, own in seeds.items())
    notes.append(f"Seeds: {counts}.")
    return notes


def _charts(curves: Sequence[Row]) -> dict[str, Chart]:
    """Return one figure per data set: accuracy over rounds, a panel per world, non-iid."""
    by_dataset: dict[str, list[Row]] = defaultdict(list)
    for row in curves:
        if row["partition"] == "primary-label":
            by_dataset[row["dataset"]].append(row)

    charts = {}
    for dataset, rows in by_dataset.items():
        panels = {}
        for world, name in WORLD_NAMES.items():
            lines = _lines([row for row in rows if row["world"] == world])
            if lines:
                panels[name] = Panel(lines, "")
        charts[f"accuracy-{dataset}"] = Chart(
            id=f"volatility-{dataset}",
            title=f"Accuracy on non-iid {dataset} when clients fail",
            caption="Lines are means over seeds, bands one standard deviation.",
            x=Axis("round"),
            y=Axis("test accuracy"),
            panels=panels,
            layout=Layout(columns=2, same_scales=True),
        )
    return charts


def _lines(rows: Sequence[Row]) -> list[Series]:
    by_name: dict[Combination, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row["selector"], row["rule"]].append(row)
    lines: list[Series] = []
    for number, (combination, own) in enumerate(by_name.items()):
        rounds = np.array([row["round"] for row in own])
        accuracy = np.array([row["accuracy"] for row in own])
        sd = np.array([row["sd"] for row in own])
        lines.append(Line(_label(combination), Style(number), rounds, accuracy, sd))
    return lines
