"""The parts that a chart is described with.

A `Chart` has one or several panels, and a panel has series: lines, boxes, bars and so on. Print
shows the panels side by side. On the page the reader chooses one panel at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.reports.palette import Style


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes:
        title: Text beside the axis. Empty if the titles of the panels say it.
        column: Name of its values in a CSV file. The title unless given.
        from_zero: Whether lines are drawn from zero on, on the page.
    """

    title: str
    column: str = ""
    from_zero: bool = False

    def __post_init__(self) -> None:
        if not self.column:
            object.__setattr__(self, "column", self.title)


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, with a band of one standard deviation where that is known.

    Attributes:
        name: Name in the legend.
        style: Colour and kind of line.
        x: [n] where the values are.
        y: [n] the values, usually means over seeds.
        sd: [n] standard deviations over seeds, nan for fewer than two seeds. None for a
            reference line, which has no seeds.
    """

    name: str
    style: Style
    x: Floats | Ints
    y: Floats
    sd: Floats | None = None


@dataclass(frozen=True, eq=False)
class Marks:
    """Single points that belong to the line of the same name, such as published values.

    Attributes:
        name: Name of the line.
        style: Style of the line.
        points: Pairs (x, y).
    """

    name: str
    style: Style
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Box plots of one scheme.

    Attributes:
        name: Name in the legend.
        style: Colour of the boxes.
        labels: Label of each box.
        values: The values [n] that each box summarises.
    """

    name: str
    style: Style
    labels: Sequence[str]
    values: Sequence[Ints]


@dataclass(frozen=True, eq=False)
class Bar:
    """One bar with an error bar.

    Attributes:
        name: Name below the bar.
        style: Colour of the bar.
        height: Its height, usually a mean over seeds.
        sd: Standard deviation over seeds, nan if it is not known.
    """

    name: str
    style: Style
    height: float
    sd: float


@dataclass(frozen=True, eq=False)
class Stack:
    """One layer of stacked bars.

    Attributes:
        name: Name in the legend.
        labels: Label of each bar, the same for all layers.
        heights: [n] height of this layer in each bar.
        style: Colour of the layer. None if the layers are steps of a scale, such as classes of
            a data set. They then get colours from dark to light.
    """

    name: str
    labels: Sequence[str] | Sequence[int]
    heights: Ints
    style: Style | None = None


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Probabilities of clients over rounds.

    Attributes:
        name: Name of the scheme.
        rounds: [n] the rounds, counted from 1.
        clients: Label of each client.
        probabilities: [clients, n] values between 0 and 1.
        marked: [clients, n] cells that get a circle.
    """

    name: str
    rounds: Ints
    clients: Sequence[str] | Sequence[int]
    probabilities: Floats
    marked: Bools


@dataclass(frozen=True, eq=False)
class Dot:
    """One point with error bars in both directions.

    Attributes:
        name: Name in the legend.
        style: Colour of the point.
        x: Its place along the x axis, usually a mean over seeds.
        y: Its place along the y axis.
        sd_x: Standard deviation of x over seeds, nan if it is not known.
        sd_y: Standard deviation of y over seeds, nan if it is not known.
    """

    name: str
    style: Style
    x: float
    y: float
    sd_x: float
    sd_y: float


@dataclass(frozen=True, eq=False)
class GroupedDots:
    """Points of one scheme, one per category, beside those of the other schemes.

    Attributes:
        name: Name in the legend.
        style: Colour of the points.
        labels: The categories, the same for all schemes.
        y: [n] the values, usually means over seeds.
        sd: [n] standard deviations over seeds, nan where they are not known.
    """

    name: str
    style: Style
    labels: Sequence[str]
    y: Floats
    sd: Floats


Series: TypeAlias = Line | Marks | Boxes | Bar | Stack | HeatMap | Dot | GroupedDots


@dataclass(frozen=True, eq=False)
class Panel:
    """What is drawn between one pair of axes.

    Attributes:
        series: What is drawn, all of one kind. `Marks` may stand beside a `Line`.
        words: The same in a sentence, for readers who do not see it.
    """

    series: Sequence[Series]
    words: str = ""


@dataclass(frozen=True)
class Layout:
    """How print arranges the panels of a chart.

    Attributes:
        columns: Largest number of panels in a row.
        width: Width of a panel in inches.
        height: Height of a panel in inches.
        same_scales: Whether the panels of a row have the same scales.
        legend_per_panel: Whether every panel has its own legend. Otherwise they share one.
    """

    columns: int = 2
    width: float = 3.6
    height: float = 2.6
    same_scales: bool = False
    legend_per_panel: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure: what it shows and what it is called, but not how a library draws it.

    Attributes:
        id: Short name without spaces, for links and file names.
        title: Heading.
        caption: Sentences below the figure.
        x: The horizontal axis.
        y: The vertical axis.
        panels: Panels by title. Empty if nothing was recorded to draw.
        panels_by: What the panels differ in. "kind" stands for kinds of run, which the reader of
            a page chooses for all charts at once.
        legend: Title of the legend.
        layout: How print arranges the panels.
        highlighted: Names of the series that the page highlights, at most four.
    """

    id: str
    title: str
    caption: str
    x: Axis
    y: Axis
    panels: Mapping[str, Panel]
    panels_by: str = "kind"
    legend: str = ""
    layout: Layout = field(default_factory=Layout)
    highlighted: Sequence[str] = ()
