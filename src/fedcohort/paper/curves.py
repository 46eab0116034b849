"""Figures 5 and 6: accuracy over rounds, with the paper's table values as marks."""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.result import Result
from fedcohort.paper import published
from fedcohort.paper.cells import Cells
from fedcohort.paper.labels import (
    describe_config,
    describe_origin,
    partition_label,
    scheme_label,
    title_on,
    update_label,
)
from fedcohort.paper.results import Results
from fedcohort.paper.setting import Overrides, full_config
from fedcohort.paper.tables import Rows
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import accuracy_over_rounds
from fedcohort.reports.report import Report
from fedcohort.statistics import sd

Panels = dict[str, dict[str, Floats]]  # accuracy [S, T] by panel and scheme
Marks = dict[str, dict[str, list[tuple[float, float]]]]  # (round, accuracy) by panel and scheme
POINTS = 10  # rounds of a curve that a table shows


def report(name: str, title: str, task: str, results: Results, overrides: Overrides) -> Report:
    """Report accuracy over rounds, with one panel per partition and update rule.

    Args:
        name: Name of the artefact.
        title: Its title in the paper, such as "Figure 5".
        task: A name in TASKS.
        results: The results to read.
        overrides: Fields of the config that the user changed.
    """
    config = full_config(task, overrides)
    (cells,), left_out = results.cells(config)
    panels = make_panels(cells)
    marks = paper_marks(config, cells)

    figures: dict[str, Chart] = {}
    if panels:
        figures[name] = accuracy_over_rounds(panels, published=marks)

    notes = ["Lines are means over seeds, bands one standard deviation."]
    if any(_has_points(panel) for panel in marks.values()):
        notes.append(
            "Circles: the paper's first rounds at an accuracy; in the last round, its final "
            "accuracy."
        )
    notes.append("Only the longest runs of a scheme are drawn.")
    notes += left_out
    notes += describe_origin(cells)

    tables = {}
    numbers: Rows = []
    for panel, curves in panels.items():
        tables[panel] = sample_rows(curves)
        for row in sample_numbers(curves):
            numbers.append({"panel": panel} | row)
    full_title = f"{title_on(config.dataset, task, title)}: {describe_config(config)}"
    return Report(name, full_title, tables, notes, {name: numbers}, figures)


def make_panels(cells: Cells) -> Panels:
    """Return accuracy [S, T] by panel (partition and update rule) and scheme."""
    panels: Panels = {}
    for (selector, partition, _, mu), runs in cells.items():
        if runs:
            panel = panels.setdefault(panel_title(partition, mu), {})
            panel[selector] = longest_runs(runs)
    return panels


def panel_title(partition: str, mu: float) -> str:
    """Return the title of a panel."""
    return f"{partition_label(partition)}, {update_label(mu)}"


def longest_runs(runs: Sequence[Result]) -> Floats:
    """Return the accuracy [S, T] of the longest runs; a mean needs runs of equal length."""
    longest = max(len(run.accuracy) for run in runs)
    curves = []
    for run in runs:
        if len(run.accuracy) == longest:
            curves.append(run.accuracy.astype(np.float64))
    return np.stack(curves)


def sample_rows(curves: Mapping[str, Floats]) -> Rows:
    """Return a few points of each curve as a table: mean accuracy in percent."""
    rows = []
    for selector, curve in curves.items():
        row = {"scheme": scheme_label(selector)}
        for round in sampled_rounds(curves):
            row[f"{round}"] = "-"
            if round <= curve.shape[1]:
                row[f"{round}"] = f"{100 * curve[:, round - 1].mean():.1f}"
        rows.append(row)
    return rows


def sample_numbers(curves: Mapping[str, Floats]) -> Rows:
    """Return the same points as numbers: mean, runs and standard deviation."""
    rows: Rows = []
    for selector, curve in curves.items():
        for round in sampled_rounds(curves):
            if round > curve.shape[1]:
                continue
            accuracy = curve[:, round - 1]
            rows.append(
                {
                    "scheme": selector,
                    "round": round,
                    "mean": accuracy.mean(),
                    "runs": accuracy.size,
                    "sd": sd(accuracy),
                }
            )
    return rows


def sampled_rounds(curves: Mapping[str, Floats]) -> list[int]:
    """Return rounds at equal distances; the last one is among them."""
    longest = max(curve.shape[1] for curve in curves.values())
    rounds = np.ceil(np.linspace(0, longest, POINTS + 1)[1:])
    return [int(round) for round in np.unique(rounds)]


def paper_marks(config: ComparisonConfig, cells: Cells) -> Marks:
    """Return the paper's points: the first round at each accuracy, and the end."""
    marks: Marks = {}
    table = published.table(config.dataset)
    as_long = config.rounds == published.ROUNDS.get(config.dataset)
    for selector, partition, _, mu in cells:
        if selector == "e3cs-inc" and not as_long:
            continue  # it changes its quota at a quarter of the rounds
        points: list[tuple[float, float]] = []
        for target, value in table.get((selector, partition, mu), {}).items():
            if target == "final" and as_long:
                points.append((config.rounds, value))
            elif target != "final" and value < inf:
                points.append((value, float(target)))
        marks.setdefault(panel_title(partition, mu), {})[selector] = points
    return marks


def _has_points(panel: dict[str, list[tuple[float, float]]]) -> bool:
    return any(panel.values())
