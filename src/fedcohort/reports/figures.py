"""Draws charts for print, with matplotlib: PNG and SVG files.

matplotlib comes with the extra `plots`. It is imported when a figure is drawn, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedcohort.files import atomic_write
from fedcohort.reports.charts.specification import Boxes, Chart, Panel, Stack
from fedcohort.reports.figure_series import draw_series
from fedcohort.reports.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Any = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "fedcohort",
}


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def save_figures(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Draw charts and write each of them as PNG and as SVG.

    Args:
        charts: Charts by file name, without ending.
        folder: Where the files go.

    Returns:
        The paths of the files.
    """
    paths = []
    for name, chart in charts.items():
        figure = draw(chart)
        for ending in ("png", "svg"):
            path = folder / f"{name}.{ending}"
            # A date would make the same figure different bytes every time.
            metadata = {"Date": None} if ending == "svg" else None
            with atomic_write(path) as draft, _own_style():
                figure.savefig(draft, dpi=160, metadata=metadata)
            paths.append(path)
    return paths


def draw(chart: Chart) -> Figure:
    """Return a chart as a matplotlib figure.

    The figure has this module's fonts and lines, whatever the user's settings of matplotlib are.

    Args:
        chart: A chart with at least one panel.
    """
    with _own_style():
        first = next(iter(chart.panels.values())).series[0]
        if isinstance(first, Boxes):
            return _draw_boxes(chart)
        if isinstance(first, Stack):
            return _draw_stacks(chart)
        return _draw_panels(chart)


@contextmanager
def _own_style() -> Iterator[None]:
    from matplotlib import rc_context, rcdefaults

    with rc_context():
        rcdefaults()
        with rc_context(STYLE):
            yield


def _draw_panels(chart: Chart) -> Figure:
    """Draw lines, bars, dots or heat maps, one panel beside the other."""
    figure, axes = _grid(chart, len(chart.panels))
    legend: dict[str, Any] = {}
    for place, (title, panel) in enumerate(chart.panels.items()):
        panel_axes = axes[place]
        for number, series in enumerate(panel.series):
            draw_series(panel_axes, series, (number + 1) / (len(panel.series) + 1))
        panel_axes.set_title(title)
        panel_axes.set_xlabel(chart.x.title)
        if chart.y.title and place % chart.layout.columns == 0:
            panel_axes.set_ylabel(chart.y.title)

        handles, names = panel_axes.get_legend_handles_labels()
        legend |= dict(zip(names, handles, strict=True))
        if chart.layout.legend_per_panel:
            panel_axes.legend(fontsize=6)

    if legend and not chart.layout.legend_per_panel:
        figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=4)
    return figure


def _draw_boxes(chart: Chart) -> Figure:
    """Draw one panel per scheme, all with the same scale: print is too narrow for groups."""
    boxes: dict[str, Boxes] = {}
    for title, panel in chart.panels.items():
        for series in panel.series:
            assert isinstance(series, Boxes)
            name = series.name if len(chart.panels) == 1 else f"{series.name}\n{title}"
            boxes[name] = series
    highest = max(values.max() for series in boxes.values() for values in series.values)
    highest = highest or 1  # All values are 0 if nobody was ever asked; a scale needs a length.

    figure, axes = _grid(chart, len(boxes))
    for panel_axes, (title, series) in zip(axes, boxes.items(), strict=True):
        drawn = panel_axes.boxplot(
            series.values,
            tick_labels=series.labels,
            widths=0.6,
            patch_artist=True,
            flierprops={"marker": ".", "markersize": 2, "alpha": 0.4, "markeredgecolor": "0.4"},
            medianprops={"color": "black", "linewidth": 1.2},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=COLOURS[series.style.colour], alpha=0.75)
        panel_axes.set_title(title)
        panel_axes.set_ylim(-0.03 * highest, 1.05 * highest)
    figure.supxlabel(chart.x.title, fontsize=9)
    figure.supylabel(chart.y.title, fontsize=9)
    return figure


def _draw_stacks(chart: Chart) -> Figure:
    """Draw stacked bars, one panel below the other, with the legend to the right."""
    figure, axes = _grid(chart, len(chart.panels))
    num_layers = 0
    for panel_axes, (title, panel) in zip(axes, chart.panels.items(), strict=True):
        num_layers = len(panel.series)
        num_bars = _draw_stack(panel_axes, panel)
        panel_axes.set_title(title)
        panel_axes.set(xlabel=chart.x.title, ylabel=chart.y.title, xlim=(-0.6, num_bars - 0.4))
        panel_axes.grid(visible=False)

    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside right upper",
        title=chart.legend or None,
        fontsize=7,
        ncols=1 + num_layers // 14,
    )
    return figure


def _draw_stack(axes: Axes, panel: Panel) -> int:
    """Draw the layers of one panel, and return the number of bars."""
    from matplotlib import colormaps

    num_layers = len(panel.series)
    bottom: Any = 0
    labels: Sequence[str] | Sequence[int] = []
    for place, layer in enumerate(panel.series):
        assert isinstance(layer, Stack)
        labels = layer.labels
        if layer.style is None:
            colour: Any = colormaps["turbo"]((place + 0.5) / num_layers)
        else:
            colour = COLOURS[layer.style.colour]
        axes.bar(
            np.arange(len(labels)),
            layer.heights,
            bottom=bottom,
            width=0.9,
            label=layer.name,
            color=colour,
        )
        bottom = bottom + layer.heights

    if list(labels) != list(range(len(labels))):
        axes.set_xticks(range(len(labels)), [str(label) for label in labels], rotation=90)
    return len(labels)


def _grid(chart: Chart, count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, in the rows and columns of the chart's layout."""
    from matplotlib.figure import Figure

    layout = chart.layout
    columns = min(layout.columns, count)
    rows = -(-count // columns)
    share: Literal["row", "none"] = "row" if layout.same_scales else "none"
    figure = Figure(figsize=(columns * layout.width, rows * layout.height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    panels = list(axes.ravel())
    for unused in panels[count:]:
        unused.remove()
    return figure, panels[:count]
