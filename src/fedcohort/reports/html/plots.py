"""Turns charts into plain values from which `page.js` draws them with plotly."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.reports.charts.seeds import evenly_spread
from fedcohort.reports.charts.specification import (
    Bar,
    Boxes,
    Chart,
    Dot,
    GroupedDots,
    HeatMap,
    Line,
    Marks,
    Panel,
    Series,
    Stack,
)
from fedcohort.reports.palette import Style

MAX_POINTS = 150  # of a line: about as many as a screen can show
DIGITS = 5
SD_DIGITS = 4
BOX_PARTS = ("low", "q1", "median", "q3", "high")
SD_COLUMN = "sd over seeds"


def as_plain(chart: Chart) -> dict[str, Any]:
    """Return a chart as dictionaries, lists, numbers and text, fit for JSON.

    Args:
        chart: A chart with at least one panel.
    """
    first = next(iter(chart.panels.values())).series[0]
    choices = {}
    summary = {}
    for title, panel in chart.panels.items():
        choices[title] = _panel_series(chart, panel)
        summary[title] = panel.words
    return {
        "id": chart.id,
        "title": chart.title,
        "caption": chart.caption,
        "type": _TYPES[type(first)],
        "axes": {"x": chart.x.title, "y": chart.y.title},
        "columns": _columns(chart, first),
        "choices": choices,
        "summary": summary,
        "by": chart.panels_by,
    }


def plain_numbers(values: Any, digits: int = DIGITS) -> list[Any]:
    """Return numbers with few digits, fit for JSON.

    Args:
        values: An array or a list of numbers. Those that are nan or infinite become None.
        digits: Significant digits.
    """
    return [_plain_number(value, digits) for value in np.asarray(values).tolist()]


def _plain_number(value: Any, digits: int) -> Any:
    if not isinstance(value, float):
        return value
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    if rounded == int(rounded):
        return int(rounded)
    return rounded


def _panel_series(chart: Chart, panel: Panel) -> list[dict[str, Any]]:
    plain = []
    last = max(1, len(panel.series) - 1)
    for place, series in enumerate(panel.series):
        name = f"{chart.legend} {series.name}".strip()
        entry: dict[str, Any] = {"name": name, "type": _TYPES[type(series)]}
        style: Style | None = getattr(series, "style", None)
        if style is not None:
            entry |= {"colour": style.colour, "dash": style.dash}
        elif isinstance(series, Stack):
            entry["shade"] = place / last  # of a scale from dark, 0, to light, 1
        entry["data"] = _data(series)
        plain.append(entry)
    return plain


def _data(series: Series) -> dict[str, Any]:
    """Return the values of a series by column."""
    match series:
        case Line():
            return _line_data(series)
        case Marks():
            return {
                "x": plain_numbers([x for x, _ in series.points]),
                "y": plain_numbers([y for _, y in series.points]),
            }
        case Boxes():
            return _box_data(series)
        case Bar():
            return {
                "x": [series.name],
                "y": plain_numbers([series.height]),
                "sd": plain_numbers([series.sd]),
            }
        case Stack():
            return {"x": list(series.labels), "y": plain_numbers(series.heights)}
        case HeatMap():
            return _heat_map_data(series)
        case Dot():
            return {
                "x": plain_numbers([series.x]),
                "y": plain_numbers([series.y]),
                "sd x": plain_numbers([series.sd_x]),
                "sd y": plain_numbers([series.sd_y]),
            }
        case GroupedDots():
            return {
                "x": list(series.labels),
                "y": plain_numbers(series.y),
                "sd": plain_numbers(series.sd, SD_DIGITS),
            }


def _line_data(line: Line) -> dict[str, Any]:
    at = evenly_spread(len(line.x), MAX_POINTS)
    sd: list[Any] = [None] * len(at)
    if line.sd is not None:
        sd = plain_numbers(line.sd[at], SD_DIGITS)
    return {"x": plain_numbers(line.x[at]), "y": plain_numbers(line.y[at]), "sd": sd}


def _box_data(boxes: Boxes) -> dict[str, Any]:
    percentiles = np.array([np.percentile(values, [0, 25, 50, 75, 100]) for values in boxes.values])
    data: dict[str, Any] = {"x": list(boxes.labels)}
    for part, values in zip(BOX_PARTS, percentiles.T, strict=True):
        data[part] = plain_numbers(values)
    return data


def _heat_map_data(heat_map: HeatMap) -> dict[str, Any]:
    probabilities = []
    for row in heat_map.probabilities.tolist():
        probabilities.append([round(value, 3) for value in row])
    return {
        "x": heat_map.rounds.tolist(),
        "y": list(heat_map.clients),
        "z": probabilities,
        "capped": [np.flatnonzero(row).tolist() for row in heat_map.marked],
    }


def _columns(chart: Chart, series: Series) -> Mapping[str, str]:
    """Return the names that the columns of the data have in a CSV file."""
    x = chart.x.column
    y = chart.y.column
    match series:
        case Boxes():
            return {
                "x": x,
                "low": "least",
                "q1": "q1",
                "median": "median",
                "q3": "q3",
                "high": "most",
            }
        case Stack():
            return {"x": x, "y": y}
        case HeatMap():
            return {"x": x, "y": y, "z": "probability", "capped": "capped"}
        case Dot():
            return {"x": x, "y": y, "sd x": f"sd of {x}", "sd y": f"sd of {y}"}
        case _:
            return {"x": x, "y": y, "sd": SD_COLUMN}


_TYPES: dict[type, str] = {
    Line: "lines",
    Marks: "marks",
    Boxes: "boxes",
    Bar: "bars",
    Stack: "stack",
    HeatMap: "heat",
    Dot: "dots",
    GroupedDots: "groups",
}
