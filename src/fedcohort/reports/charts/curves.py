"""Charts of curves over rounds or over time: accuracy, success, participation, regret.

Their arguments are arrays [S, T] of S seeds and T rounds, by panel and by scheme. A chart without
panels means that nothing was recorded to draw.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.reports.charts.seeds import Curve, accuracy_over_seconds, curve_over_rounds
from fedcohort.reports.charts.specification import (
    Axis,
    Chart,
    Layout,
    Line,
    Marks,
    Panel,
    Series,
)
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.palette import NEUTRAL, NUM_DASHES, Style, scheme_style

BAND = "Lines are means over the seeds that were played furthest, bands one standard deviation."

FIRST_SEED_ENDS = "A curve ends when the first of its seeds has no more rounds."

Values: TypeAlias = Mapping[str, Mapping[str, npt.NDArray[Any]]]
Points: TypeAlias = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]


def accuracy_over_rounds(
    accuracy: Values, *, published: Points | None = None, columns: int = 2
) -> Chart:
    """Return the chart of test accuracy after each round. Rounds without a test are left out.

    Args:
        accuracy: Arrays [S, T] by panel and scheme.
        published: Points (round, accuracy) by panel and scheme, drawn as circles.
        columns: Panels in a row of the printed figure.
    """
    y = Axis("test accuracy")
    panels = {}
    for title, curves in _curves(accuracy).items():
        points = (published or {}).get(title, {})
        series: list[Series] = []
        for name, curve in curves.items():
            series.append(_line(name, curve))
            if points.get(name):
                series.append(Marks(name, scheme_style(name), points[name]))
        panels[title] = Panel(series, last_values(y, curves))
    caption = "Accuracy on the test samples after each round."
    return Chart(
        id="accuracy-rounds",
        title="Accuracy over rounds",
        caption=with_band_note(caption, panels),
        x=Axis("round"),
        y=y,
        panels=panels,
        layout=Layout(columns=columns, same_scales=True),
    )


def accuracy_over_time(groups: Mapping[str, Mapping[str, SchemeResults]]) -> Chart:
    """Return the chart of test accuracy over virtual seconds.

    Args:
        groups: Schemes by kind of run.
    """
    y = Axis("test accuracy")
    panels = {}
    for title, schemes in groups.items():
        curves = {}
        for name, scheme in schemes.items():
            curve = accuracy_over_seconds(scheme)
            if curve.x.size:
                curves[name] = curve
        if curves:
            panels[title] = _panel(y, curves)

    caption = (
        "The same over virtual time: a round lasts until its last answer, or until the deadline "
        f"if an answer is missing. {FIRST_SEED_ENDS}"
    )
    return Chart(
        id="accuracy-time",
        title="Accuracy over virtual time",
        caption=with_band_note(caption, panels),
        x=Axis("virtual seconds"),
        y=y,
        panels=panels,
    )


def success_ratio(ratio: Values) -> Chart:
    """Return the chart of the share of updates that were used so far.

    Args:
        ratio: Arrays [S, T] by kind of run and scheme.
    """
    y = Axis("success ratio")
    panels = _panels(y, ratio)
    caption = "Share of all updates asked for so far that arrived in time and were valid."
    return Chart(
        id="success",
        title="Success ratio",
        caption=with_band_note(caption, panels),
        x=Axis("round"),
        y=y,
        panels=panels,
    )


def effective_participation(cep: Values) -> Chart:
    """Return the chart of cumulative effective participation (CEP).

    Args:
        cep: Number of updates used so far, arrays [S, T] by kind of run and scheme.
    """
    y = Axis("updates used so far")
    panels = _panels(y, cep)
    caption = "Cumulative effective participation (CEP): the number of updates used so far."
    return Chart(
        id="cep",
        title="Effective participation (CEP)",
        caption=with_band_note(caption, panels),
        x=Axis("round"),
        y=y,
        panels=panels,
    )


def over_rounds(quantities: Values) -> Chart:
    """Return a chart with one panel per quantity.

    Args:
        quantities: Arrays [S, T] by quantity and scheme. The panels have the quantities as titles.
    """
    panels = {}
    for title, curves in _curves(quantities).items():
        panels[title] = _panel(Axis(title), curves)
    return Chart(
        id="over-rounds",
        title="Over rounds",
        caption=BAND,
        x=Axis("round"),
        y=Axis("", column="value"),
        panels=panels,
        panels_by="quantity",
        layout=Layout(height=3.0),
    )


def regret_and_bounds(
    regret: Mapping[str, Mapping[str, Floats]], bounds: Mapping[str, Mapping[str, Floats]]
) -> Chart:
    """Return the chart of regret beside the curves that should bound it.

    Args:
        regret: Arrays [S, T] by case and variant.
        bounds: Arrays [T] by case and name of the bound, drawn in grey.
    """
    panels = {}
    for case, variants in regret.items():
        series: list[Series] = []
        for place, (name, values) in enumerate(variants.items()):
            curve = curve_over_rounds(values)
            series.append(Line(name, Style(place), curve.x, curve.mean, curve.sd))
        for place, (name, bound) in enumerate(bounds[case].items()):
            style = Style(NEUTRAL, dash=1 + place % (NUM_DASHES - 1))
            series.append(Line(name, style, np.arange(1, bound.size + 1), bound))
        panels[case] = Panel(series)
    return Chart(
        id="regret",
        title="Regret",
        caption=f"{BAND} Grey lines are bounds.",
        x=Axis("round"),
        y=Axis("regret"),
        panels=panels,
        panels_by="case",
        layout=Layout(columns=3, width=2.6, height=2.5, legend_per_panel=True),
    )


def _curves(values: Values) -> dict[str, dict[str, Curve]]:
    """Return the curves that have points, by panel and scheme."""
    found: dict[str, dict[str, Curve]] = {}
    for title, schemes in values.items():
        for name, array in schemes.items():
            curve = curve_over_rounds(array)
            if curve.x.size:
                found.setdefault(title, {})[name] = curve
    return found


def _panels(y: Axis, values: Values) -> dict[str, Panel]:
    return {title: _panel(y, curves) for title, curves in _curves(values).items()}


def _panel(y: Axis, curves: Mapping[str, Curve]) -> Panel:
    lines = [_line(name, curve) for name, curve in curves.items()]
    return Panel(lines, last_values(y, curves))


def _line(name: str, curve: Curve) -> Line:
    return Line(name, scheme_style(name), curve.x, curve.mean, curve.sd)


def with_band_note(caption: str, panels: Mapping[str, Panel]) -> str:
    """Return a caption that also says what lines and bands mean, if a line has a band.

    Args:
        caption: The caption without it.
        panels: The panels of the chart.
    """
    for panel in panels.values():
        for series in panel.series:
            if isinstance(series, Line) and series.sd is not None and np.isfinite(series.sd).any():
                return f"{caption} {BAND}"
    return caption


def last_values(y: Axis, curves: Mapping[str, Curve]) -> str:
    """Say where curves end, the highest first.

    Args:
        y: What they show.
        curves: The curves by name.
    """
    ends = sorted(((curve.mean[-1], name) for name, curve in curves.items()), reverse=True)
    words = ", ".join(f"{name} {value:.4g}" for value, name in ends)
    return f"At the end, {y.title}: {words}."
