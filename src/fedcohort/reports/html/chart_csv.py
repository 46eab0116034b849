"""The values of a chart as the CSV file that the page offers, compressed into it."""

import csv
import io
import zlib
from base64 import b64encode
from collections.abc import Iterator
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
    Series,
    Stack,
)
from fedcohort.reports.svg.bars import five_numbers

MAX_POINTS = 400  # of a line
MAX_ROWS = 16_000  # of all lines of a chart: of many lines fewer points are kept
MIN_POINTS = 20
DIGITS = 6
Row = list[Any]


def chart_csv(chart: Chart) -> str:
    """Return the values of all panels of a chart as CSV.

    Args:
        chart: A chart with at least one panel.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = next(iter(chart.panels.values())).series[0]
    writer.writerow([chart.panels_by, "series", *_columns(chart, first)])
    num_series = sum(len(panel.series) for panel in chart.panels.values())
    limit = int(np.clip(MAX_ROWS // num_series, MIN_POINTS, MAX_POINTS))
    for title, panel in chart.panels.items():
        for series in panel.series:
            name = f"{chart.legend} {series.name}".strip()
            for row in _rows(series, limit):
                writer.writerow([title, name, *(_plain(value) for value in row)])
    return text.getvalue()


def compressed(text: str) -> str:
    """Return text that the script of the page can unpack: deflated, in base 64."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def _columns(chart: Chart, series: Series) -> list[str]:
    x = chart.x.column
    y = chart.y.column
    match series:
        case Boxes():
            return [x, "least", "q1", "median", "q3", "most"]
        case Stack():
            return [x, y]
        case HeatMap():
            return [x, y, "probability", "capped"]
        case Dot():
            return [x, y, f"sd of {x}", f"sd of {y}"]
        case _:
            return [x, y, "sd over seeds"]


def _rows(series: Series, limit: int) -> Iterator[Row]:
    match series:
        case Line():
            for place in evenly_spread(len(series.x), limit):
                sd = None if series.sd is None else series.sd[place]
                yield [series.x[place], series.y[place], sd]
        case Marks():
            for x, y in series.points:
                yield [x, y, None]
        case Boxes():
            for label, values in zip(series.labels, series.values, strict=True):
                if len(values):
                    yield [label, *five_numbers(values)]
        case Bar():
            yield [series.name, series.height, series.sd]
        case Stack():
            for bar, height in zip(series.labels, series.heights, strict=True):
                yield [bar, height]
        case HeatMap():
            yield from _heat_map_rows(series)
        case Dot():
            yield [series.x, series.y, series.sd_x, series.sd_y]
        case GroupedDots():
            for label, y, sd in zip(series.labels, series.y, series.sd, strict=True):
                yield [label, y, sd]


def _heat_map_rows(heat_map: HeatMap) -> Iterator[Row]:
    for row, client in enumerate(heat_map.clients):
        for column, round_number in enumerate(heat_map.rounds.tolist()):
            share = round(float(heat_map.probabilities[row, column]), 3)
            yield [round_number, client, share, int(heat_map.marked[row, column])]


def _plain(value: Any) -> Any:
    """Return a value with few digits; empty text for what is not known."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.{DIGITS}g}" if np.isfinite(value) else ""
    return value
