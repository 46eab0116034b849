"""Points: one per scheme, or one per scheme and category."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.charts.specification import Chart, Dot, GroupedDots, Panel
from fedcohort.reports.svg.frame import (
    BOLD_LETTER,
    LABEL_GAP,
    Size,
    category_axis,
    label_text,
    number,
    place_labels,
    polyline,
    shortened,
    slot_class,
    spread_labels,
    text,
    with_labels,
    with_numbers,
    x_axis,
    y_axis,
)
from fedcohort.reports.svg.scales import Scale, value_range

RADIUS = 5.5
MARGIN = 0.06  # of the range of values, around them


def draw_dots(chart: Chart, panel: Panel, slots: Mapping[str, int], size: Size) -> str:
    """Return the inside of a drawing of points with error bars in both directions.

    Args:
        chart: The chart, for the titles of its axes.
        panel: What to draw.
        slots: Number of the colour of each highlighted point, by name.
        size: Size of the drawing.
    """
    dots = [series for series in panel.series if isinstance(series, Dot)]
    y = Scale(*_range([(dot.y, dot.sd_y) for dot in dots]), *size.y_range)
    size = with_numbers(size, y)
    x = Scale(*_range([(dot.x, dot.sd_x) for dot in dots]), *size.x_range)
    drawn = y_axis(size, y, chart.y.title) + x_axis(size, x, chart.x.title)
    named = [dot for dot in dots if dot.name in slots]
    ends = spread_labels([y.place(dot.y) for dot in named], size.top, size.y_range[0])
    label_of = {dot.name: place for dot, place in zip(named, ends, strict=True)}
    for dot in sorted(dots, key=lambda one: one.name in slots):
        label_y = label_of.get(dot.name, y.place(dot.y))
        drawn += _dot(dot, x, y, slots.get(dot.name), label_y)
    return drawn


def draw_grouped_dots(chart: Chart, panel: Panel, slots: Mapping[str, int], size: Size) -> str:
    """Return the inside of a drawing of one line per scheme with one point per category.

    Args:
        chart: The chart, for the titles of its axes.
        panel: What to draw.
        slots: Number of the colour of each highlighted scheme, by name.
        size: Size of the drawing.
    """
    groups = [series for series in panel.series if isinstance(series, GroupedDots)]
    labels = groups[0].labels
    named = [group for group in groups if group.name in slots]
    size = with_labels(size, [group.name for group in named], [group.name for group in groups])
    spreads: list[tuple[float, float]] = []
    for group in groups:
        spreads += list(zip(group.y.tolist(), group.sd.tolist(), strict=True))
    y = Scale(*_range(spreads), *size.y_range)
    size = with_numbers(size, y)
    inset = 18 if size.is_narrow else 36
    left, right = size.x_range
    places = np.linspace(left + inset, right - inset / 2, len(labels))

    drawn = y_axis(size, y, chart.y.title)
    drawn += category_axis(size, places.tolist(), labels, chart.x.title)
    label_at = place_labels(size, {group.name: _last(group, y) for group in named})
    for group in sorted(groups, key=lambda one: one.name in slots):
        shift = 5.0 * (slots[group.name] - 1) if group.name in slots else 0.0
        at = label_at.get(group.name, (right + LABEL_GAP - 4, _last(group, y)))
        drawn += _group(group, places + shift, y, slots.get(group.name), at)
    return drawn


def _dot(dot: Dot, x: Scale, y: Scale, slot: int | None, label_y: float) -> str:
    """Return a point with error bars and a label, to its left at the right end."""
    across = _bar(x, dot.x, dot.sd_x)
    along = _bar(y, dot.y, dot.sd_y)
    x_place = x.place(dot.x)
    y_place = y.place(dot.y)
    errors = ""
    if across:
        errors += f"M{number(across[0])} {number(y_place)}H{number(across[1])}"
    if along:
        errors += f"M{number(x_place)} {number(along[0])}V{number(along[1])}"

    label_width = len(shortened(dot.name)) * BOLD_LETTER
    is_right = x_place > x.end - (label_width + 14)
    label_x = max(x_place - 10, label_width) if is_right else x_place + 10
    return _mark(
        dot.name,
        slot,
        f"{dot.name}: {dot.x:.4g}, {dot.y:.4g}",
        f'<path class="error" d="{errors}"/>' if errors else "",
        f'<circle cx="{number(x_place)}" cy="{number(y_place)}" r="{RADIUS}"/>',
        label_text(dot.name, label_x, label_y, is_right),
    )


def _group(
    group: GroupedDots, x: Floats, y: Scale, slot: int | None, at: tuple[float, float]
) -> str:
    """Return the line of one scheme; error bars only if it is highlighted."""
    known = np.flatnonzero(np.isfinite(group.y))
    if not known.size:
        return ""
    places = y.places(group.y)
    parts = f'<path class="line" d="{polyline(x[known], places[known])}"/>'
    errors = ""
    for place in known.tolist():
        bar = _bar(y, float(group.y[place]), float(group.sd[place]))
        if bar and slot is not None:
            errors += f"M{number(x[place])} {number(bar[0])}V{number(bar[1])}"
        where = f'cx="{number(x[place])}" cy="{number(places[place])}"'
        value = f"{group.name}, {group.labels[place]}: {group.y[place]:.4g}"
        parts += f'<circle {where} r="4.5"><title>{text(value)}</title></circle>'
    if errors:
        parts += f'<path class="error" d="{errors}"/>'
    return _mark(group.name, slot, group.name, parts, label_text(group.name, *at))


def _mark(name: str, slot: int | None, tooltip: str, *parts: str) -> str:
    return (
        f'<g class="series {slot_class(slot)}" data-name="{text(name)}">'
        f"<title>{text(tooltip)}</title>{''.join(parts)}</g>"
    )


def _last(group: GroupedDots, y: Scale) -> float:
    known = group.y[np.isfinite(group.y)]
    return y.place(float(known[-1])) if known.size else y.start


def _range(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the range of values with their standard deviations, and a margin."""
    ends = []
    for value, sd in values:
        spread = sd if np.isfinite(sd) else 0.0
        ends += [value - spread, value + spread]
    low, high = value_range([ends])
    margin = MARGIN * (high - low)
    return low - margin, high + margin


def _bar(scale: Scale, value: float, sd: float) -> tuple[float, float] | None:
    """Return the ends of an error bar, None if there is none."""
    if not np.isfinite(sd) or sd == 0:
        return None
    return scale.place(value - sd), scale.place(value + sd)
