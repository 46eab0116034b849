"""Charts as the values that the script of the page reads."""

import json

import numpy as np
import pytest

from fedcohort.reports.charts import (
    Axis,
    Bar,
    Boxes,
    Chart,
    Dot,
    GroupedDots,
    HeatMap,
    Line,
    Marks,
    Panel,
    Stack,
)
from fedcohort.reports.html.plots import as_plain, plain_numbers
from fedcohort.reports.palette import Style

NAN = float("nan")
BLUE = Style(0, dash=2)


def plain(*series, legend=""):
    panels = {"all": Panel(series, "Words.")}
    chart = Chart("id", "Title", "Caption.", Axis("x"), Axis("y", "why"), panels, legend=legend)
    values = as_plain(chart)
    json.dumps(values, allow_nan=False)
    return values


def test_numbers_have_few_digits_and_nan_is_none():
    numbers = [0.123456789, 2.0, NAN, float("inf"), 123456.0]
    assert plain_numbers(numbers) == [0.12346, 2, None, None, 123460]
    assert plain_numbers(np.array([1, 2])) == [1, 2]


def test_a_long_line_is_thinned_and_keeps_both_ends():
    x = np.arange(1, 5001)
    chart = plain(Line("a", BLUE, x, x - 1.0, np.full(5000, NAN)))
    data = chart["choices"]["all"][0]["data"]
    assert len(data["x"]) <= 150
    assert (data["x"][0], data["x"][-1]) == (1, 5000)
    for x, y in zip(data["x"], data["y"], strict=True):
        assert y == pytest.approx(x - 1, rel=1e-4)
    assert set(data["sd"]) == {None}


def test_a_line_has_its_style_and_its_columns_have_names():
    chart = plain(Line("a", BLUE, np.array([1]), np.array([0.5])), Marks("a", BLUE, [(1, 0.25)]))
    line, marks = chart["choices"]["all"]
    assert chart["type"] == "lines"
    assert chart["columns"] == {"x": "x", "y": "why", "sd": "sd over seeds"}
    assert (line["colour"], line["dash"]) == (0, 2)
    assert line["data"] == {"x": [1], "y": [0.5], "sd": [None]}
    assert (marks["type"], marks["data"]) == ("marks", {"x": [1], "y": [0.25]})


def test_boxes_reach_from_the_least_to_the_most():
    chart = plain(Boxes("a", BLUE, ["0.1"], [np.array([1, 2, 3, 4, 100])]))
    assert chart["choices"]["all"][0]["data"] == {
        "x": ["0.1"],
        "low": [1],
        "q1": [2],
        "median": [3],
        "q3": [4],
        "high": [100],
    }


def test_grouped_dots_have_a_value_and_a_spread_per_category():
    dots = GroupedDots("a", BLUE, ["10%", "90%"], np.array([0.5, NAN]), np.array([0.1, NAN]))
    chart = plain(dots)
    assert chart["type"] == "groups"
    assert chart["columns"] == {"x": "x", "y": "why", "sd": "sd over seeds"}
    data = chart["choices"]["all"][0]["data"]
    assert data == {"x": ["10%", "90%"], "y": [0.5, None], "sd": [0.1, None]}


def test_the_layers_of_a_scale_go_from_dark_to_light_and_have_the_title_of_the_legend():
    layers = [Stack(str(label), [0, 1], np.array([1, 2])) for label in range(3)]
    chart = plain(*layers, legend="label")
    assert [layer["shade"] for layer in chart["choices"]["all"]] == [0, 0.5, 1]
    assert [layer["name"] for layer in chart["choices"]["all"]] == ["label 0", "label 1", "label 2"]


def test_a_heat_map_lists_the_rounds_in_which_a_client_is_marked():
    marked = np.array([[False, True], [False, False]])
    values = np.array([[0.12345, 1.0], [0.5, 0.25]])
    chart = plain(HeatMap("a", np.array([1, 3]), ["c0", "c1"], values, marked))
    data = chart["choices"]["all"][0]["data"]
    assert data["z"] == [[0.123, 1.0], [0.5, 0.25]]
    assert data["capped"] == [[1], []]


def test_bars_and_dots_have_their_spread():
    bar = plain(Bar("a", BLUE, 2.0, NAN))["choices"]["all"][0]["data"]
    assert bar == {"x": ["a"], "y": [2], "sd": [None]}
    dots = plain(Dot("a", BLUE, 1.0, 2.0, 0.5, NAN))
    assert dots["columns"]["sd y"] == "sd of why"
    data = {"x": [1], "y": [2], "sd x": [0.5], "sd y": [None]}
    assert dots["choices"]["all"][0]["data"] == data
