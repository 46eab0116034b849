"""Draws single series into the axes of a printed figure, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.reports.charts.seeds import evenly_spread
from fedcohort.reports.charts.specification import Bar, Dot, GroupedDots, HeatMap, Line, Marks
from fedcohort.reports.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 400  # of a line: more than print can show
DASHES = ("-", "--", "-.", ":")


def draw_series(axes: Axes, series: Any, share: float) -> None:
    """Draw one series.

    Args:
        axes: Where to draw.
        series: A line, marks, a bar, a dot, grouped dots or a heat map.
        share: For grouped dots, their place in the width of each category, between 0 and 1.
    """
    if isinstance(series, GroupedDots):
        _draw_grouped_dots(axes, series, share)
    else:
        _DRAW[type(series)](axes, series)


def _draw_line(axes: Axes, line: Line) -> None:
    at = evenly_spread(len(line.x), MAX_POINTS)
    x = line.x[at]
    y = line.y[at]
    colour = COLOURS[line.style.colour]
    width = 1.0 if line.sd is None else 1.3
    dash = DASHES[line.style.dash]
    axes.plot(x, y, label=line.name, color=colour, linestyle=dash, linewidth=width)
    if line.sd is not None:
        sd = np.nan_to_num(line.sd[at])
        axes.fill_between(x, y - sd, y + sd, color=colour, alpha=0.2, linewidth=0)


def _draw_marks(axes: Axes, marks: Marks) -> None:
    for x, y in marks.points:
        axes.plot(
            x,
            y,
            "o",
            color=COLOURS[marks.style.colour],
            markersize=4,
            markeredgecolor="black",
            markeredgewidth=0.5,
        )


def _draw_bar(axes: Axes, bar: Bar) -> None:
    colour = COLOURS[bar.style.colour]
    axes.bar([bar.name], [bar.height], yerr=[np.nan_to_num(bar.sd)], color=colour)


def _draw_dot(axes: Axes, dot: Dot) -> None:
    axes.errorbar(
        [dot.x],
        [dot.y],
        xerr=[np.nan_to_num(dot.sd_x)],
        yerr=[np.nan_to_num(dot.sd_y)],
        fmt="o",
        label=dot.name,
        color=COLOURS[dot.style.colour],
    )


def _draw_grouped_dots(axes: Axes, dots: GroupedDots, share: float) -> None:
    """Draw the points of a scheme at this share of the width of each category."""
    places = np.arange(len(dots.labels))
    axes.errorbar(
        places + share - 0.5,
        dots.y,
        yerr=np.nan_to_num(dots.sd),
        fmt="o",
        markersize=4,
        label=dots.name,
        color=COLOURS[dots.style.colour],
    )
    axes.set_xticks(places, dots.labels)
    axes.set_xlim(-0.5, len(places) - 0.5)


def _draw_heat_map(axes: Axes, heat_map: HeatMap) -> None:
    rows = np.arange(len(heat_map.clients))
    image = axes.pcolormesh(
        heat_map.rounds, rows, heat_map.probabilities, vmin=0, vmax=1, cmap="cividis"
    )
    axes.figure.colorbar(image, ax=axes, label="probability")
    clients, rounds = np.nonzero(heat_map.marked)
    axes.scatter(
        heat_map.rounds[rounds],
        rows[clients],
        s=4,
        facecolors="none",
        edgecolors=COLOURS[4],
        linewidths=0.5,
    )
    axes.grid(visible=False)


_DRAW: dict[type, Any] = {
    Line: _draw_line,
    Marks: _draw_marks,
    Bar: _draw_bar,
    Dot: _draw_dot,
    HeatMap: _draw_heat_map,
}
