"""Bars: one per scheme, stacked ones, and box plots."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats
from fedcohort.reports.charts.specification import Bar, Boxes, Chart, Panel, Stack
from fedcohort.reports.svg.frame import (
    LABEL_GAP,
    LETTER,
    LINE,
    MOST_LETTERS,
    Size,
    category_axis,
    label_text,
    number,
    place_labels,
    shortened,
    slot_class,
    text,
    with_labels,
    with_numbers,
    y_axis,
)
from fedcohort.reports.svg.scales import Scale, value_range

BAR_HEIGHT = 26
LARGEST_SHARE = 0.4  # of the width that names may take
# Viridis, as red, green and blue: the colours of the steps of a scale.
SHADES = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def bars_height(panel: Panel) -> float:
    """Return the height of a drawing of bars: it grows with their number."""
    return len(panel.series) * BAR_HEIGHT + 34


def draw_bars(chart: Chart, panel: Panel, slots: Mapping[str, int], size: Size) -> str:
    """Return the inside of a drawing of horizontal bars, each with its name and its value.

    Args:
        chart: The chart, for the title of the values.
        panel: What to draw.
        slots: Number of the colour of each highlighted bar, by name.
        size: Size of the drawing.
    """
    bars = [series for series in panel.series if isinstance(series, Bar)]
    most = min(MOST_LETTERS, int((LARGEST_SHARE * size.width - 12) / LETTER))
    names = [shortened(bar.name, most) for bar in bars]
    left = max(len(name) for name in names) * LETTER + 12
    size = replace(size, left=left, right=118)
    low, high = value_range([[bar.height for bar in bars]], with_zero=True)
    x = Scale(low, high, *size.x_range)
    drawn = f'<text class="title" x="2" y="13">{text(chart.y.title)}</text>'
    for place, bar in enumerate(bars):
        drawn += _bar(bar, names[place], x, 24 + place * BAR_HEIGHT, slots.get(bar.name))
    return drawn


def draw_stacks(chart: Chart, panel: Panel, size: Size) -> str:
    """Return the inside of a drawing of stacked bars, one path for each layer.

    Args:
        chart: The chart, for the titles of its axes.
        panel: What to draw.
        size: Size of the drawing.
    """
    layers = [series for series in panel.series if isinstance(series, Stack)]
    labels = [str(label) for label in layers[0].labels]
    total = sum(np.asarray(layer.heights, dtype=np.float64) for layer in layers)
    y = Scale(0.0, value_range([np.asarray(total)], with_zero=True)[1], *size.y_range)
    size = with_numbers(size, y)
    left, right = size.x_range
    step = (right - left) / max(1, len(labels))
    width = max(step - 1, 0.6 * step)
    places = np.asarray(left + step * (np.arange(len(labels)) + 0.5), dtype=np.float64)

    drawn = y_axis(size, y, chart.y.title)
    drawn += category_axis(size, places.tolist(), labels, chart.x.title)
    below = np.zeros(len(labels))
    for layer, colour in zip(layers, stack_colours(panel), strict=True):
        heights = np.asarray(layer.heights, dtype=np.float64)
        path = _rectangles(places - width / 2, width, y.places(below), y.places(below + heights))
        name = text(f"{chart.legend} {layer.name}".strip())
        drawn += (
            f'<path class="layer" style="fill:{colour}" d="{path}"><title>{name}</title></path>'
        )
        below += heights
    return drawn


def stack_colours(panel: Panel) -> list[str]:
    """Return the colour of each layer: its own, or a step of a scale from dark to light."""
    colours = []
    last = max(1, len(panel.series) - 1)
    for place, layer in enumerate(panel.series):
        assert isinstance(layer, Stack)
        if layer.style is None:
            colours.append(_shade(place / last))
        else:
            colours.append(f"var(--c{layer.style.colour})")
    return colours


def draw_boxes(chart: Chart, panel: Panel, slots: Mapping[str, int], size: Size) -> str:
    """Return the inside of a drawing of box plots, those of one category side by side.

    The names of the schemes stand at the right, in the order of their boxes.

    Args:
        chart: The chart, for the titles of its axes.
        panel: What to draw.
        slots: Number of the colour of each highlighted scheme, by name.
        size: Size of the drawing.
    """
    groups = [series for series in panel.series if isinstance(series, Boxes)]
    named = [group for group in groups if group.name in slots]
    labels = groups[0].labels
    highest = value_range([np.concatenate(group.values) for group in groups], with_zero=True)[1]
    size = with_labels(size, [group.name for group in named], [group.name for group in groups])
    y = Scale(0.0, highest, *size.y_range)
    size = with_numbers(size, y)
    left, right = size.x_range
    step = (right - left) / len(labels)
    centres = np.asarray(left + step * (np.arange(len(labels)) + 0.5), dtype=np.float64)
    slot_width = 0.86 * step / len(groups)

    drawn = y_axis(size, y, chart.y.title)
    drawn += category_axis(size, centres.tolist(), labels, chart.x.title)
    wanted = _name_places(size, len(groups))
    names_at = {group.name: wanted[place] for place, group in enumerate(groups)}
    label_at = place_labels(size, {group.name: names_at[group.name] for group in named})
    for place, group in enumerate(groups):
        at = label_at.get(group.name, (right + LABEL_GAP - 4, names_at[group.name]))
        shift = (place - (len(groups) - 1) / 2) * slot_width
        path = ""
        for centre, values in zip(centres, group.values, strict=True):
            if len(values):
                path += _box(centre + shift, 0.7 * slot_width, values, y)
        drawn += (
            f'<g class="series {slot_class(slots.get(group.name))}" '
            f'data-name="{text(group.name)}"><title>{text(group.name)}</title>'
            f'<path class="box" d="{path}"/>{label_text(group.name, *at)}</g>'
        )
    return drawn


def five_numbers(values: npt.ArrayLike) -> Floats:
    """Return the least value, the quartiles and the most, [5]."""
    return np.percentile(np.asarray(values, dtype=np.float64), [0, 25, 50, 75, 100])


def _bar(bar: Bar, name: str, x: Scale, top: float, slot: int | None) -> str:
    """Return one bar with its name at its left and its value at its right."""
    middle = number(top + BAR_HEIGHT / 2 + 2)
    ends = sorted((x.place(bar.height), x.place(0.0)))
    width = number(ends[1] - ends[0])
    shape = f'x="{number(ends[0])}" y="{top}" width="{width}" height="{BAR_HEIGHT - 8}" rx="2"'
    value = _value_with_sd(bar)
    return (
        f'<g class="series {slot_class(slot)}" data-name="{text(bar.name)}">'
        f"<title>{text(bar.name)}: {value}</title><rect {shape}/>"
        f'<text class="name end" x="{number(x.start - 8)}" y="{middle}">'
        f"{text(name)}</text>"
        f'<text class="value" x="{number(ends[1] + 6)}" y="{middle}">{value}</text></g>'
    )


def _value_with_sd(bar: Bar) -> str:
    """Return the height of a bar, with its standard deviation where that is known."""
    value = f"{bar.height:,.4g}" if abs(bar.height) < 1000 else f"{bar.height:,.0f}"
    if not np.isfinite(bar.sd):
        return value
    sd = f"{bar.sd:.3g}" if bar.sd < 1000 else f"{bar.sd:,.0f}"
    return f"{value} ± {sd}"


def _name_places(size: Size, count: int) -> list[float]:
    """Return where the names of so many schemes go, closer together if they are many."""
    bottom, top = size.y_range
    step = min(LINE, (bottom - top) / count)
    return [top + step * (place + 0.5) for place in range(count)]


def _box(centre: float, width: float, values: npt.ArrayLike, y: Scale) -> str:
    low, q1, median, q3, high = (number(place) for place in y.places(five_numbers(values)))
    left = number(centre - width / 2)
    right = number(centre + width / 2)
    middle = number(centre)
    return (
        f"M{middle} {low}V{q1}M{middle} {q3}V{high}M{left} {q1}H{right}V{q3}H{left}z"
        f"M{left} {median}H{right}"
    )


def _rectangles(left: Floats, width: float, bottom: Floats, top: Floats) -> str:
    path = ""
    for x, low, high in zip(left, bottom, top, strict=True):
        height = low - high
        if height > 0:
            right = number(width)
            path += f"M{number(x)} {number(high)}h{right}v{number(height)}h-{right}z"
    return path


def _shade(share: float) -> str:
    """Return the colour at a place between 0 and 1 of the scale."""
    place = min(share, 0.9999) * (len(SHADES) - 1)
    step = int(place)
    parts = []
    for low, high in zip(SHADES[step], SHADES[step + 1], strict=True):
        parts.append(f"{low + (place - step) * (high - low):.0f}")
    return f"rgb({','.join(parts)})"
