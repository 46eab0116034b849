"""Every chart is described here once, and drawn by two renderers.

`reports.figures` draws a chart for print, with matplotlib. `reports.svg` draws it for the page. A
new chart is one function that returns a `Chart`, and one line where it is shown: in
`html.page.page_charts` or in the `figures` of a `Report`.
"""

from fedcohort.reports.charts.specification import (
    Axis,
    Bar,
    Boxes,
    Chart,
    Dot,
    GroupedDots,
    HeatMap,
    Layout,
    Line,
    Marks,
    Panel,
    Series,
    Stack,
)

__all__ = [
    "Axis",
    "Bar",
    "Boxes",
    "Chart",
    "Dot",
    "GroupedDots",
    "HeatMap",
    "Layout",
    "Line",
    "Marks",
    "Panel",
    "Series",
    "Stack",
]
