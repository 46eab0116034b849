"""What a drawing of the page must not lose: numbers of its axes, and names of its series."""

import re

import numpy as np

from fedcohort.reports.charts import Axis, Bar, Boxes, Chart, Dot, Line, Panel
from fedcohort.reports.palette import Style
from fedcohort.reports.svg.draw import draw_panel
from fedcohort.reports.svg.frame import BOLD_LETTER, LETTER, NARROW
from fedcohort.reports.svg.scales import ticks, value_range

TEXT = re.compile(r'<text class="([^"]*)" x="([^"]*)" y="([^"]*)">([^<]*)</text>')


def drawn(series, size=None, highlighted=()):
    """Return a drawing and its texts: class, x, y and words."""
    panel = Panel(series, "Words.")
    chart = Chart("id", "T", "C.", Axis("round"), Axis("y"), {"p": panel}, highlighted=highlighted)
    html = draw_panel(chart, panel, "key", *([size] if size else []))
    texts = [(kind, float(x), float(y), words) for kind, x, y, words in TEXT.findall(html)]
    return html, texts


def line(x, y, name="a"):
    return Line(name, Style(0), np.array(x), np.array(y, dtype=float))


def test_rounds_are_whole_numbers_below_a_short_run():
    for rounds in (range(1, 2), range(1, 4), range(1, 6), range(1, 14)):
        _, texts = drawn([line(rounds, rounds)])
        labels = [words for kind, _, _, words in texts if kind == "tick middle"]
        assert labels
        assert all(label.isdigit() for label in labels)


def test_nothing_but_zeros_has_no_negative_axis():
    _, texts = drawn([line([1, 2], [0, 0])])
    labels = [words for kind, _, _, words in texts if kind == "tick end"]
    assert len(labels) > 1
    assert not any(label.startswith("-") for label in labels)
    assert value_range([[-2.0, -2.0]]) == (-2.1, -1.9)


def test_seconds_may_have_ticks_between_whole_numbers():
    _, texts = drawn([line([0.5, 1.25], [1, 2])])
    assert any("." in words for kind, _, _, words in texts if kind == "tick middle")


def test_whole_ticks_have_whole_steps():
    for high in range(2, 60):
        for value in ticks(1, high, count=6, whole=True):
            assert value == int(value)


def test_long_numbers_of_the_vertical_axis_are_inside_the_drawing():
    series = {
        "line": [line([1, 2], [0, 1.8e6])],
        "dots": [Dot("a", Style(0), 0.5, 1e6, np.nan, np.nan), Dot("b", Style(0), 1, 9e6, 0, 0)],
        "boxes": [Boxes("a", Style(0), ["x"], [np.array([0, 1_000_000, 2_000_000])])],
    }
    for name, content in series.items():
        _, texts = drawn(content)
        numbers = [(x, words) for kind, x, _, words in texts if kind == "tick end"]
        assert max(len(words) for _, words in numbers) == 9, name
        for x, words in numbers:
            assert x - len(words) * LETTER >= 0, name


def test_boxes_have_the_names_of_their_schemes_one_below_the_other():
    boxes = [Boxes(f"s{place}", Style(0), ["x"], [np.array([1, 2])]) for place in range(25)]
    html, texts = drawn(boxes, highlighted=("s3", "s4", "s5"))
    labels = {words: y for kind, _, y, words in texts if kind == "label"}
    assert list(labels) == [box.name for box in boxes]
    assert labels["s4"] - labels["s3"] >= 14.9
    assert labels["s5"] - labels["s4"] >= 14.9
    assert html.count('class="series h') == 3


def test_a_long_name_beside_a_dot_is_inside_a_narrow_drawing():
    name = "a_very_long_name_of_a_selector"
    dots = [Dot(name, Style(0), x, x, np.nan, np.nan) for x in (0.0, 0.4, 1.0)]
    dots = [Dot(f"{place}{name}", one.style, one.x, one.y, 0, 0) for place, one in enumerate(dots)]
    _, texts = drawn(dots, NARROW)
    for kind, x, _, words in texts:
        if kind == "label end":
            assert x - len(words) * BOLD_LETTER >= -0.1


def test_a_long_name_of_a_bar_is_cut_where_a_narrow_drawing_has_no_room():
    bars = [Bar("a_very_long_name_of_a_selector", Style(0), 2.0, 0.5), Bar("b", Style(0), 1.0, 0.5)]
    html, texts = drawn(bars, NARROW)
    names = [(x, words) for kind, x, _, words in texts if kind == "name end"]
    assert [words[:3] for _, words in names] == ["a_v", "b"]
    for x, words in names:
        assert x - len(words) * LETTER >= 0
    assert "<title>a_very_long_name_of_a_selector: 2 ± 0.5</title>" in html
