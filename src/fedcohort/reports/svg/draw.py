"""One panel of a chart as SVG, and the colours that its series get."""

from collections.abc import Mapping
from dataclasses import replace

from fedcohort.reports.charts.specification import (
    Bar,
    Boxes,
    Chart,
    Dot,
    GroupedDots,
    HeatMap,
    Panel,
    Stack,
)
from fedcohort.reports.svg.bars import bars_height, draw_bars, draw_boxes, draw_stacks
from fedcohort.reports.svg.frame import WIDE, Size, text
from fedcohort.reports.svg.heat import draw_heat_map
from fedcohort.reports.svg.lines import draw_lines
from fedcohort.reports.svg.points import draw_dots, draw_grouped_dots

MAX_HIGHLIGHTED = 4


def highlight(chart: Chart, panel: Panel) -> dict[str, int]:
    """Return which series are highlighted, at most four, with the number of their colour.

    Args:
        chart: The chart. Those that it names come first. A panel with few series needs no grey
            ones, so the others follow there.
        panel: One of its panels.
    """
    names = list(dict.fromkeys(series.name for series in panel.series))
    slots = {}
    for place, name in enumerate(chart.highlighted[:MAX_HIGHLIGHTED]):
        if name in names:
            slots[name] = place
    if len(names) <= MAX_HIGHLIGHTED:
        free = [slot for slot in range(MAX_HIGHLIGHTED) if slot not in slots.values()]
        others = [name for name in names if name not in slots]
        slots |= dict(zip(others, free, strict=False))
    return slots


def draw_panel(chart: Chart, panel: Panel, key: str, size: Size = WIDE, kind: str = "") -> str:
    """Return one panel of a chart as an SVG element.

    Args:
        chart: The chart.
        panel: One of its panels.
        key: Unique part of the ids in the drawing.
        size: Size of the drawing.
        kind: Class of the element, beside the one of all drawings.
    """
    slots = highlight(chart, panel)
    if isinstance(panel.series[0], Bar):
        size = replace(size, height=bars_height(panel))
    inside = _inside(chart, panel, slots, size, key)
    title = text(f"{chart.title}: {panel.words}")
    classes = f"drawing {kind}".strip()
    return (
        f'<svg class="{classes}" viewBox="0 0 {size.width:g} {size.height:g}" role="img" '
        f'aria-label="{title}">{inside}</svg>'
    )


def _inside(chart: Chart, panel: Panel, slots: Mapping[str, int], size: Size, key: str) -> str:
    match panel.series[0]:
        case Bar():
            return draw_bars(chart, panel, slots, size)
        case Stack():
            return draw_stacks(chart, panel, size)
        case Boxes():
            return draw_boxes(chart, panel, slots, size)
        case HeatMap() as heat_map:
            return draw_heat_map(chart, heat_map, size)
        case Dot():
            return draw_dots(chart, panel, slots, size)
        case GroupedDots():
            return draw_grouped_dots(chart, panel, slots, size)
        case _:
            return draw_lines(chart, panel, slots, size, key)
