"""Accuracy over rounds, with bands over seeds and the paper's table values as marks."""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.lab.archive import Result
from fedcohort.lab.config import ComparisonConfig
from fedcohort.paper import published
from fedcohort.paper.artefact import Changes, Pool, about, title_of
from fedcohort.paper.cells import Cells
from fedcohort.paper.setting import whole_setting
from fedcohort.paper.tabulate import Rows, label, update
from fedcohort.reports.charts import Chart
from fedcohort.reports.charts.curves import accuracy_over_rounds
from fedcohort.reports.report import Report
from fedcohort.statistics import sd

Panels = dict[str, dict[str, Floats]]
Marks = dict[str, dict[str, list[tuple[float, float]]]]
POINTS = 10  # rows of a curve in a table


def report(name: str, title: str, task: str, changes: Changes, pool: Pool) -> Report:
    """Return the curves of a task, one panel per partition and update rule."""
    of = whole_setting(task, changes)
    (found,), others = pool.cells(of)
    panels = {kind: drawn for kind, drawn in by_kind(found).items() if drawn}

    marked = marks(of, found)

    figures: dict[str, Chart] = {}
    if panels:
        figures[name] = accuracy_over_rounds(panels, published=marked)
    notes = ["Lines are means over seeds, bands one standard deviation."]
    if any(points for schemes in marked.values() for points in schemes.values()):
        notes.append(
            "Circles: the paper's first rounds at an accuracy; in the last round, its final accuracy."
        )
    notes.append("Of a scheme's runs only those that came the furthest are drawn.")
    title = title if of.dataset == task else f"As {title}, on other data"
    tables = {kind: sampled(drawn) for kind, drawn in panels.items()}
    numbers = {
        name: [{"panel": kind} | row for kind, drawn in panels.items() for row in points(drawn)]
    }
    return Report(
        name, f"{title}: {title_of(of)}", tables, notes + others + about(found), numbers, figures
    )


def by_kind(found: Cells) -> Panels:
    """Return accuracy [S, T] by partition and update rule, and scheme."""
    panels: Panels = {}
    for (selector, partition, _, mu), runs in found.items():
        panel = panels.setdefault(f"{label(partition)}, {update(mu)}", {})
        if runs:
            panel[selector] = stacked(runs)
    return panels


def stacked(runs: Sequence[Result]) -> Floats:
    """Return the accuracy of those runs that came the furthest [S, T]: a mean does not change its company halfway."""
    furthest = max(len(run.accuracy) for run in runs)
    return np.stack(
        [run.accuracy.astype(np.float64) for run in runs if len(run.accuracy) == furthest]
    )


def sampled(curves: Mapping[str, Floats]) -> Rows:
    """Return a few points of each curve as a table: mean accuracy in percent at some rounds."""
    return [
        {"scheme": published.SCHEMES.get(name, name)}
        | {
            f"{t}": f"{100 * curve[:, t - 1].mean():.1f}" if t <= curve.shape[1] else "-"
            for t in some_rounds(curves)
        }
        for name, curve in curves.items()
    ]


def points(curves: Mapping[str, Floats]) -> Rows:
    """Return the same points for machines: mean, runs and standard deviation."""
    return [
        {"scheme": name, "round": t, "mean": at.mean(), "runs": at.size, "sd": sd(at)}
        for name, curve in curves.items()
        for t in some_rounds(curves)
        if t <= curve.shape[1]
        for at in (curve[:, t - 1],)
    ]


def some_rounds(curves: Mapping[str, Floats]) -> list[int]:
    """Return rounds evenly apart, the last among them."""
    longest = max(curve.shape[1] for curve in curves.values())
    return [int(t) for t in np.unique(np.ceil(np.linspace(0, longest, POINTS + 1)[1:]))]


def marks(of: ComparisonConfig, found: Cells) -> Marks:
    """Return the paper's points, by panel and scheme: the first round at each accuracy, and the end."""
    points: Marks = {}
    paper = published.table(of.dataset)
    whole = of.rounds == published.TABLES.get(of.dataset)
    for selector, partition, _, mu in found:
        cell = paper.get((selector, partition, mu), {})
        if selector == "e3cs-inc" and not whole:
            continue  # it turns at a quarter of the rounds
        at = [
            (first, float(target))
            for target, first in cell.items()
            if target != "final" and first < inf
        ]
        if whole and "final" in cell:
            at.append((of.rounds, cell["final"]))
        points.setdefault(f"{label(partition)}, {update(mu)}", {})[selector] = at
    return points
