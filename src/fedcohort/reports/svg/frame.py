"""The frame of a drawing: its size, its axes, and the small words of SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.reports.svg.scales import Scale, tick_labels, ticks

LETTER = 6.6  # mean width of a letter, in units of the drawing
BOLD_LETTER = 7.4  # the same of the labels of series
LINE = 15  # least distance of two labels
NUMBER_GAP = 8  # between the numbers of the vertical axis and the grid
LABEL_GAP = 12  # between the end of a line and its label
LARGEST_SHARE = 0.34  # of the width that labels may take
MOST_LETTERS = 30  # of a label; a longer one is cut, and its tooltip is whole


@dataclass(frozen=True)
class Size:
    """The size of a drawing and the space around its axes, in units of about a pixel.

    Attributes:
        width: Width of the whole drawing.
        height: Height of the whole drawing.
        left: Space for the numbers of the vertical axis.
        right: Space for labels at the ends of lines.
        top: Space for the title of the vertical axis.
        bottom: Space for the horizontal axis.
        labels_on_top: Whether labels stand above the axes, because they are too long to stand
            beside them.
    """

    width: float = 720
    height: float = 340
    left: float = 52
    right: float = 16
    top: float = 30
    bottom: float = 46
    labels_on_top: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether the drawing is made for a phone."""
        return self.width < 500

    @property
    def x_range(self) -> tuple[float, float]:
        """Places of the ends of the horizontal axis."""
        return self.left, self.width - self.right

    @property
    def y_range(self) -> tuple[float, float]:
        """Places of the lower and of the upper end of the vertical axis."""
        return self.height - self.bottom, self.top


WIDE = Size()
NARROW = Size(width=360, height=300, left=44, right=10)


def text(content: str) -> str:
    """Return text that shows as it is, also inside an attribute."""
    return escape(content)


def slot_class(slot: int | None) -> str:
    """Return the class of a series: the number of its colour, or one of the others."""
    return "other" if slot is None else f"h{slot}"


def shortened(name: str, most: int = MOST_LETTERS) -> str:
    """Return a name that is not too long for a label.

    Args:
        name: The name.
        most: Number of letters that there is room for.

    Examples:
        >>> shortened("random"), len(shortened("x" * 99))
        ('random', 30)
    """
    if len(name) <= most:
        return name
    return f"{name[: most - 1]}…"


def number(value: float) -> str:
    """Return a place with one digit after the point, as short as it can be.

    Examples:
        >>> number(12.04), number(-0.52)
        ('12', '-.5')
    """
    rounded = f"{value:.1f}".removesuffix(".0")
    if rounded in ("-0", "0"):
        return "0"
    return rounded.replace("0.", ".", 1) if rounded.startswith(("0.", "-0.")) else rounded


def polyline(x: Floats, y: Floats) -> str:
    """Return the path through points: the first one as it is, the others relative to the last.

    Places are rounded before they are subtracted, so that the errors do not add up.

    Args:
        x: [n] places, at least one.
        y: [n] places.
    """
    x_tenths = np.rint(x * 10).astype(np.int64)
    y_tenths = np.rint(y * 10).astype(np.int64)
    path = f"M{number(x_tenths[0] / 10)} {number(y_tenths[0] / 10)}"
    if len(x) == 1:
        return path
    steps = []
    for right, down in zip(np.diff(x_tenths), np.diff(y_tenths), strict=True):
        steps.append(f"{number(right / 10)} {number(down / 10)}")
    return f"{path}l{' '.join(steps)}".replace(" -", "-")


def with_numbers(size: Size, scale: Scale) -> Size:
    """Return the size with room at the left for the numbers of the vertical axis.

    Args:
        size: Size of the drawing.
        scale: Scale of the vertical axis.
    """
    longest = max((len(label) for label in tick_labels(_y_ticks(scale))), default=0)
    return replace(size, left=max(size.left, longest * LETTER + NUMBER_GAP))


def y_axis(size: Size, scale: Scale, title: str) -> str:
    """Return horizontal grid lines with their numbers, and the title above them."""
    marks = _y_ticks(scale)
    left, right = size.x_range
    drawn = f'<text class="title" x="2" y="13">{text(title)}</text>'
    x = number(left - NUMBER_GAP)
    path = ""
    for value, label in zip(marks, tick_labels(marks), strict=True):
        y = number(scale.place(value))
        path += f"M{number(left)} {y}H{number(right)}"
        middle = number(scale.place(value) + 4)
        drawn += f'<text class="tick end" x="{x}" y="{middle}">{label}</text>'
    return f'<path class="grid" d="{path}"/>{drawn}'


def _y_ticks(scale: Scale) -> list[float]:
    return ticks(scale.low, scale.high, 5)


def x_axis(size: Size, scale: Scale, title: str, *, whole: bool = False) -> str:
    """Return the numbers below a linear axis, and its title.

    Args:
        size: Size of the drawing.
        scale: Scale of the axis.
        title: Its title.
        whole: Whether only whole numbers have a meaning there, as for rounds.
    """
    room = (size.x_range[1] - size.x_range[0]) / 75
    marks = ticks(scale.low, scale.high, max(2, int(room)), whole=whole)
    places = [scale.place(value) for value in marks]
    return _below(size, places, tick_labels(marks), title)


def category_axis(size: Size, places: Sequence[float], labels: Sequence[str], title: str) -> str:
    """Return labels below their places, as many as do not touch, and the title."""
    if not places:
        return _below(size, [], [], title)
    longest = max(len(label) for label in labels)
    room = size.x_range[1] - size.x_range[0]
    fitting = max(1, int(room / (min(longest, MOST_LETTERS) * LETTER + 8)))
    step = -(-len(labels) // fitting)
    return _below(size, list(places)[::step], [shortened(one) for one in labels[::step]], title)


def _below(size: Size, places: Sequence[float], labels: Sequence[str], title: str) -> str:
    bottom = size.y_range[0]
    left, right = size.x_range
    drawn = f'<path class="axis" d="M{number(left)} {number(bottom)}H{number(right)}"/>'
    for place, label in zip(places, labels, strict=True):
        y = number(bottom + 18)
        drawn += f'<text class="tick middle" x="{number(place)}" y="{y}">{text(label)}</text>'
    middle = number((left + right) / 2)
    y = number(size.height - 6)
    return drawn + f'<text class="title middle" x="{middle}" y="{y}">{text(title)}</text>'


def label_text(name: str, x: float, y: float, ends_here: bool = False) -> str:
    """Return the label of a series, beginning at a place or ending there."""
    side = " end" if ends_here else ""
    words = text(shortened(name))
    return f'<text class="label{side}" x="{number(x)}" y="{number(y + 4)}">{words}</text>'


def with_labels(size: Size, names: Sequence[str], hidden: Sequence[str] = ()) -> Size:
    """Return the size with room for labels: at the right, or at the top of a narrow drawing.

    Args:
        size: Size of the drawing.
        names: Labels that are always seen.
        hidden: Labels that are seen one at a time, and may be cut.
    """
    longest = max((len(shortened(name)) for name in names or hidden), default=0)
    wanted = longest * BOLD_LETTER + LABEL_GAP + 4
    if size.is_narrow and wanted > LARGEST_SHARE * size.width:
        return replace(size, top=size.top + LINE * len(names), labels_on_top=True)
    return replace(size, right=min(wanted, LARGEST_SHARE * size.width))


def place_labels(size: Size, ends: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return where labels go: beside the ends of their lines, or all at the top.

    Args:
        size: Size of the drawing, made by `with_labels`.
        ends: Place along the vertical axis where each labelled line ends, by name.
    """
    if size.labels_on_top:
        first = size.top - LINE * len(ends) - 4
        return {name: (size.left, first + LINE * rank) for rank, name in enumerate(ends)}
    places = spread_labels(list(ends.values()), size.top, size.y_range[0] - 4)
    right = size.x_range[1] + LABEL_GAP - 4
    return {name: (right, place) for name, place in zip(ends, places, strict=True)}


def spread_labels(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return places for labels near those wanted, in the same order and without overlap.

    Args:
        places: Where each label should be.
        top: The smallest place.
        bottom: The largest place. It gives way if there are too many labels.

    Examples:
        >>> spread_labels([50, 52, 100], top=0, bottom=200)
        [43.5, 58.5, 100.0]
    """
    # Neighbours that are too close become a group, which is centred on what its labels want.
    groups: list[list[int]] = []
    for place in sorted(range(len(places)), key=lambda index: places[index]):
        groups.append([place])
        while len(groups) > 1 and _first(groups[-1], places) < _last(groups[-2], places) + LINE:
            groups[-2:] = [groups[-2] + groups[-1]]
    found = [0.0] * len(places)
    lowest = top
    for group in groups:
        first = max(_first(group, places), lowest)
        first = max(min(first, bottom - LINE * (len(group) - 1)), lowest)
        for rank, index in enumerate(group):
            found[index] = first + LINE * rank
        lowest = first + LINE * len(group)
    return found


def _first(group: Sequence[int], places: Sequence[float]) -> float:
    middle = sum(places[index] for index in group) / len(group)
    return middle - LINE * (len(group) - 1) / 2


def _last(group: Sequence[int], places: Sequence[float]) -> float:
    return _first(group, places) + LINE * (len(group) - 1)
