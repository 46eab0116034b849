"""Lines: a few highlighted and labelled at their ends, the others grey until hovered."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.charts.seeds import evenly_spread
from fedcohort.reports.charts.specification import Chart, Line, Marks, Panel
from fedcohort.reports.svg.frame import (
    LABEL_GAP,
    Size,
    label_text,
    number,
    place_labels,
    polyline,
    slot_class,
    text,
    with_labels,
    with_numbers,
    x_axis,
    y_axis,
)
from fedcohort.reports.svg.scales import Scale, value_range

MAX_POINTS = 120  # of a line: about as many as a screen can show
MAX_PLACES = 16_000  # of all lines of a chart: many lines have fewer points each
MIN_POINTS = 20


def draw_lines(chart: Chart, panel: Panel, slots: Mapping[str, int], size: Size, key: str) -> str:
    """Return the inside of a drawing of lines.

    Args:
        chart: The chart, for the titles of its axes.
        panel: What to draw.
        slots: Number of the colour of each highlighted line, by name.
        size: Size of the drawing.
        key: Unique part of the ids in it.
    """
    lines = [series for series in panel.series if isinstance(series, Line)]
    marks = [series for series in panel.series if isinstance(series, Marks)]
    named = [line for line in lines if line.name in slots]
    size = with_labels(size, [line.name for line in named], [line.name for line in lines])
    y = Scale(*_y_range(lines, marks, chart.y.from_zero), *size.y_range)
    size = with_numbers(size, y)
    x = Scale(*value_range([line.x for line in lines]), *size.x_range)

    labels = place_labels(size, {line.name: _end(line, y) for line in named})
    drawn = y_axis(size, y, chart.y.title)
    is_whole = _has_whole_x(lines)
    drawn += x_axis(size, x, chart.x.title, whole=is_whole)
    num_lines = sum(len(one.series) for one in chart.panels.values())
    limit = int(np.clip(MAX_PLACES // max(1, num_lines), MIN_POINTS, MAX_POINTS))
    # Highlighted lines come last, so that they are on top.
    for place, line in enumerate(sorted(lines, key=lambda one: one.name in slots)):
        at = labels.get(line.name, (size.x_range[1] + LABEL_GAP - 4, _end(line, y)))
        drawn += _line(_thinned(line, limit), x, y, slots.get(line.name), at, f"{key}-{place}")
    for group in marks:
        drawn += _marks(group, x, y, slots.get(group.name))
    scales = _scales(chart, x, y, is_whole)
    return f'<g class="plane" {scales}>{drawn}<path class="cursor"/></g>'


def _scales(chart: Chart, x: Scale, y: Scale, is_whole: bool) -> str:
    """Return what the script needs to turn places into values again."""
    ends = (x.low, x.high, y.low, y.high, x.start, x.end, y.start, y.end)
    values = " ".join(f"{value:.8g}" for value in ends)
    whole = " data-whole" if is_whole else ""
    return f'data-scales="{values}" data-x="{text(chart.x.title)}"{whole}'


def _has_whole_x(lines: Sequence[Line]) -> bool:
    """Return whether all values of the horizontal axis are whole numbers, such as rounds."""
    return all(np.equal(np.mod(line.x, 1), 0).all() for line in lines)


def _y_range(lines: Sequence[Line], marks: Sequence[Marks], from_zero: bool) -> tuple[float, float]:
    values: list[Floats] = []
    for line in lines:
        spread = np.zeros(len(line.y)) if line.sd is None else np.nan_to_num(line.sd)
        values += [line.y - spread, line.y + spread]
    for group in marks:
        values.append(np.array([y for _, y in group.points]))
    return value_range(values, with_zero=from_zero)


def _end(line: Line, y: Scale) -> float:
    known = line.y[np.isfinite(line.y)]
    return y.place(float(known[-1])) if known.size else y.start


def _line(
    line: Line, x: Scale, y: Scale, slot: int | None, at: tuple[float, float], key: str
) -> str:
    """Return a line with its band, a wide invisible copy to hover over, and its label."""
    if not line.x.size:
        return ""
    x_places = x.places(line.x)
    y_places = y.places(line.y)
    path = polyline(x_places, y_places)
    kind = "line"
    if len(line.x) == 1:
        path += "h.1"  # a dot, by its round ends
        kind = "line point"
    band = ""
    if slot is not None and line.sd is not None and np.isfinite(line.sd).any():
        band = _band(x_places, line.y, np.nan_to_num(line.sd), y)

    last = f"{line.y[-1]:.4g}"
    tooltip = f"{line.name}: {last} at the end"
    label = label_text(line.name, *at)
    return (
        f'<g class="series {slot_class(slot)}" data-name="{text(line.name)}">'
        f"<title>{text(tooltip)}</title>{band}"
        f'<path class="{kind}" id="{key}" d="{path}"/><use class="hit" href="#{key}"/>{label}</g>'
    )


def _thinned(line: Line, limit: int) -> Line:
    """Return a line with at most so many points, and only those with values."""
    known = np.flatnonzero(np.isfinite(line.y))
    shown = known[evenly_spread(known.size, limit)] if known.size else known
    sd = None if line.sd is None else line.sd[shown]
    return replace(line, x=line.x[shown], y=line.y[shown], sd=sd)


def _band(x_places: Floats, y: Floats, sd: Floats, scale: Scale) -> str:
    around = np.concatenate([scale.places(y + sd), scale.places(y - sd)[::-1]])
    path = polyline(np.concatenate([x_places, x_places[::-1]]), around)
    return f'<path class="band" d="{path}z"/>'


def _marks(marks: Marks, x: Scale, y: Scale, slot: int | None) -> str:
    drawn = ""
    for x_value, y_value in marks.points:
        where = f'cx="{number(x.place(x_value))}" cy="{number(y.place(y_value))}"'
        drawn += f'<circle {where} r="5"><title>{x_value:.4g}: {y_value:.4g}</title></circle>'
    name = text(marks.name)
    return f'<g class="series marks {slot_class(slot)}" data-name="{name}">{drawn}</g>'
