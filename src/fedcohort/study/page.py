"""The report of a study: tables, figures and notes, from the rows of its runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.reports.charts.specification import Axis, Chart, Layout, Line, Panel, Series
from fedcohort.reports.palette import Style
from fedcohort.reports.report import Report
from fedcohort.study.analysis import Combination, compare_with
from fedcohort.study.combinations import combination_rows, measured_figures
from fedcohort.study.measures import Row
from fedcohort.study.tables import (
    Place,
    average_rule_row,
    by_place,
    label,
    mean_rows,
    overview_rows,
    rule_row,
    selector_row,
    summary_row,
    values_by_combination,
    worst_row,
)
from fedcohort.study.targets import COSTS, cost_row
from fedcohort.study.volatility import BASELINE, WORLD_NAMES

# The combinations in the figures: few enough to be told apart.
DRAWN: tuple[Combination, ...] = (
    BASELINE,
    ("random", "fedvarp"),
    ("age", "fedvarp"),
    ("e3cs-0.5", "normalised"),
    ("random", "paper"),
)


def make_report(rows: Sequence[Row], curves: Sequence[Row]) -> Report:
    """Return the report of the study `volatility`.

    Args:
        rows: One row per run.
        curves: Rows of the kept accuracy curves.
    """
    places = by_place(rows)
    finals = {place: values_by_combination(own, "final") for place, own in places.items()}
    differences = {place: compare_with(BASELINE, own) for place, own in finals.items()}
    worst = {place: values_by_combination(own, "worst_class") for place, own in places.items()}
    return Report(
        name="volatility",
        title="What helps when clients fail",
        tables={
            "Final accuracy beside uniform selection with normalised averaging": [
                *overview_rows("primary-label", differences),
                *overview_rows("iid", differences),
            ],
            "Every rule with uniform selection, mean over the worlds": [
                *mean_rows("primary-label", differences),
                *mean_rows("iid", differences),
            ],
            "Final accuracy, by data, world and partition": [
                summary_row(place, finals[place], differences[place]) for place in places
            ],
            **_cost_tables(places),
            "Every rule beside normalised averaging, averaged over all selectors": [
                average_rule_row(place, finals[place]) for place in places
            ],
            "Every rule beside normalised averaging, both with uniform selection": [
                rule_row(place, differences[place]) for place in places
            ],
            "Every selector beside uniform selection, both with normalised averaging": [
                selector_row(place, differences[place]) for place in places
            ],
            "Worst class of clients": [worst_row(place, own) for place, own in worst.items()],
        },
        notes=_notes(places),
        numbers={"combinations": combination_rows(places, differences)},
        figures=_charts(curves),
    )


def _cost_tables(places: Mapping[Place, Sequence[Row]]) -> dict[str, list[Row]]:
    """Return one table for each cost of the target accuracy."""
    tables = {}
    for measure, title in COSTS.items():
        tables[title] = [cost_row(place, own, measure) for place, own in places.items()]
    return tables


def _notes(places: Mapping[Place, Sequence[Row]]) -> list[str]:
    notes = [
        "Final accuracy is the mean of the last tenth of the rounds, in percent, and points are "
        f"differences from {label(BASELINE)}, with 95 % intervals. A star marks a difference "
        "that holds at the 5 % level after Holm's correction for all combinations of its row's "
        "data, world and partition. Runs are paired by seed; the noise is pooled over all "
        "combinations of a block that have the same rule. Averages over all selectors are taken "
        "for each seed first; they have the noise from seed to seed, and Holm's correction is for "
        "the rules of a row. A difference without an interval has "
        "no known noise, because all seeds agree; it gets no star. A dash stands for a "
        "combination that was not run.",
        '"not told from the best" counts the combinations that cannot be told from the highest at '
        "the 5 % level. The runs themselves chose the highest, so it is compared by the "
        "studentised range of all combinations of its row's data, world and partition.",
        f"Costs of the target accuracy are geometric means over seeds for {label(BASELINE)}, and "
        "ratios to that for the others: below 1 is cheaper. They are compared by their "
        'logarithms, as accuracies are. "never" means that no seed reached the target, and '
        '"4 of 5" that four of five seeds did. There is no ratio where a seed of the '
        f"combination or of {label(BASELINE)} missed the target. Client steps are the SGD steps "
        "of all clients whose updates arrived. Virtual seconds are the durations of the rounds.",
        _numbers_note(measured_figures(places)),
    ]
    seeds: dict[str, set[float]] = defaultdict(set)
    for (dataset, _, _), own in places.items():
        seeds[dataset] |= {row["seed"] for row in own}
    counts = ", ".join(f"{dataset} {len(own)}" for dataset, own in seeds.items())
    notes.append(f"Seeds: {counts}.")
    return notes


def _numbers_note(figures: Sequence[str]) -> str:
    """Say what combinations.csv has, and what its column of wasted work means."""
    note = "combinations.csv has every combination, with standard deviations over seeds."
    if "wasted_work_share" in figures:
        note += (
            " `wasted_work_share` is the share of all client-seconds that went into updates that "
            "did not count."
        )
    if "wasted_share" in figures:
        note += (
            " `wasted_share_at_least` is a lower bound of the share of client-seconds that were "
            "wasted: it takes every client as busy until the end of its round. So it is close to "
            "the share of the updates asked for that were lost."
        )
    return note


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
    for number, combination in enumerate(DRAWN):
        own = by_name[combination]
        if not own:
            continue
        rounds = np.array([row["round"] for row in own])
        accuracy = np.array([row["accuracy"] for row in own])
        sd = np.array([row["sd"] for row in own])
        lines.append(Line(label(combination), Style(number), rounds, accuracy, sd))
    return lines
