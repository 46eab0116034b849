"""Where printed figures draw their values, and what the words of charts say at their ends."""

import matplotlib
import numpy as np
import pytest
from page_text import Tags

from fedcohort.lab.recorder import Allocations
from fedcohort.reports.charts import (
    Axis,
    Bar,
    Boxes,
    Chart,
    Dot,
    HeatMap,
    Layout,
    Line,
    Panel,
    Stack,
)
from fedcohort.reports.charts.clients import inclusion_probabilities, selections_per_class
from fedcohort.reports.charts.curves import over_rounds, regret_and_bounds
from fedcohort.reports.figures import draw
from fedcohort.reports.findings import SchemeResults
from fedcohort.reports.html.elements import definitions, rows_table
from fedcohort.reports.html.figures import controls
from fedcohort.reports.html.terms import Marker
from fedcohort.reports.markup import as_latex, as_markdown
from fedcohort.reports.palette import COLOURS, Style

X = np.arange(1, 4)


def chart(panels, **more):
    named = {title: Panel(series) for title, series in panels.items()}
    return Chart("id", "Title", "Caption.", Axis("x axis"), Axis("y axis"), named, **more)


def test_a_band_reaches_one_standard_deviation_to_both_sides():
    line = Line("a", Style(0), X, np.array([1.0, 2.0, 3.0]), np.array([0.5, np.nan, 0.25]))
    (band,) = draw(chart({"p": [line]})).axes[0].collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert corners == {(1, 0.5), (1, 1.5), (2, 2), (3, 2.75), (3, 3.25)}


def error_bars(axes):
    """Return the ends of all error bars."""
    ends = []
    for collection in axes.collections:
        ends += [segment.tolist() for segment in collection.get_segments()]
    return ends


def test_error_bars_are_those_of_their_own_axis():
    dot = Dot("a", Style(0), x=0.5, y=0.75, sd_x=0.25, sd_y=0.125)
    sideways, upright = error_bars(draw(chart({"p": [dot]})).axes[0])
    assert sideways == [[0.25, 0.75], [0.75, 0.75]]
    assert upright == [[0.5, 0.625], [0.5, 0.875]]
    bar = Bar("a", Style(0), 2.0, 0.5)
    axes = draw(chart({"p": [bar]})).axes[0]
    assert error_bars(axes) == [[[0, 1.5], [0, 2.5]]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a"]


def test_a_heat_map_shows_each_probability_in_its_round_and_for_its_client():
    values = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    heat = HeatMap("a", np.array([1, 3, 9]), ["c0", "c1"], values, np.zeros((2, 3), dtype=bool))
    axes = draw(chart({"a": [heat]})).axes[0]
    mesh = axes.collections[0]
    np.testing.assert_allclose(np.ma.getdata(mesh.get_array()).reshape(2, 3), values)
    assert mesh.get_clim() == (0, 1)


def test_panels_stand_in_rows_and_the_first_of_a_row_names_the_axis():
    panels = {title: [Line(title, Style(0), X, X / 4)] for title in "abcde"}
    figure = draw(chart(panels, layout=Layout(columns=2, width=3.0, height=2.0)))
    assert [axes.get_title() for axes in figure.axes] == list("abcde")
    assert [axes.get_ylabel() for axes in figure.axes] == ["y axis", "", "y axis", "", "y axis"]
    assert figure.get_size_inches().tolist() == [6.0, 6.0]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == list("abcde")


def test_boxes_share_one_scale_and_have_the_labels_of_their_classes():
    low = Boxes("low", Style(0), ["0.1", "0.9"], [np.array([1, 2]), np.array([3, 4])])
    high = Boxes("high", Style(1), ["0.1", "0.9"], [np.array([5, 6]), np.array([80, 100])])
    figure = draw(chart({"p": [low, high]}))
    assert [axes.get_title() for axes in figure.axes] == ["low", "high"]
    for axes in figure.axes:
        assert axes.get_ylim() == pytest.approx((-3, 105))
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "0.9"]
    assert figure.get_supxlabel() == "x axis"
    assert figure.get_supylabel() == "y axis"


def test_the_legend_of_stacks_has_its_title_and_every_layer_a_colour_of_its_own():
    layers = [Stack(str(label), [0, 1], np.array([1, 2])) for label in range(4)]
    figure = draw(chart({"p": layers}, legend="label"))
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "label"
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2", "3"]
    colours = set()
    for bars in figure.axes[0].containers:
        colours.add(matplotlib.colors.to_hex(bars[0].get_facecolor()))
    assert len(colours) == 4
    plain = draw(chart({"p": layers}))
    assert plain.legends[0].get_title().get_text() in ("", "None")


def test_the_words_of_probabilities_are_those_of_the_first_and_the_last_round():
    inclusion = np.array([[0.2, 0.4, 0.3], [0.9, 0.9, 0.9], [0.1, 1.0, 0.5]])
    recorded = Allocations(np.array([0, 3, 7]), inclusion, inclusion == 1.0)
    chart = inclusion_probabilities({"e3cs-0": recorded}, ordered_by_class=True)
    assert chart.panels["e3cs-0"].words == (
        "e3cs-0: between 0.2 and 0.4 in the first round, between 0.1 and 1 in round 8, when 1 of "
        "3 clients are capped."
    )
    (heat,) = chart.panels["e3cs-0"].series
    assert heat.probabilities.tolist() == inclusion.T.tolist()
    assert heat.marked.tolist() == (inclusion == 1.0).T.tolist()
    assert heat.clients == [0, 1, 2]
    assert chart.caption.endswith("in the order of the rates in the settings.")


def test_selections_have_three_panels_in_a_row_and_the_median_of_each_class():
    counts = np.array([[1, 3, 10, 20], [2, 6, 30, 60]])
    chart = selections_per_class({"p": {"a": counts}}, np.array([1, 1, 0, 0]), (0.5, 0.25))
    assert chart.layout.columns == 3
    # Class 0 has 10, 20, 30 and 60; class 1 has 1, 3, 2 and 6.
    assert chart.panels["p"].words == (
        "Median times asked, by class of success rate 0.5/0.25: a 25/2.5."
    )


def test_regret_has_a_colour_per_variant_and_a_dash_per_bound():
    bounds = {name: np.full(2, height) for name, height in (("b", 3.0), ("c", 4.0))}
    drawn = regret_and_bounds(
        {"case": {"v": np.array([[1.0, 2.0], [3.0, 4.0]]), "w": np.ones((2, 2))}},
        {"case": bounds},
    )
    first, second, *grey = drawn.panels["case"].series
    assert (first.name, second.name) == ("v", "w")
    assert first.y.tolist() == [2.0, 3.0]
    assert (first.style.colour, second.style.colour) == (0, 1)
    assert [line.name for line in grey] == ["b", "c"]
    assert [line.y.tolist() for line in grey] == [[3.0, 3.0], [4.0, 4.0]]
    assert [line.style.dash for line in grey] == [1, 2]
    assert {line.style.colour for line in grey} == {len(COLOURS) - 1}


def test_quantities_over_rounds_have_panels_of_their_own():
    drawn = over_rounds({"CEP": {"a": np.array([[1.0, 3.0]])}, "ratio": {"a": np.array([[0.5]])}})
    assert drawn.panels["CEP"].words == "At the end, CEP: a 3."
    assert drawn.panels["ratio"].words == "At the end, ratio: a 0.5."
    assert drawn.layout.height == 3.0


def test_a_table_of_the_page_has_a_row_head_and_wraps_long_columns():
    rows = [{"scheme": "a", "why": "x" * 37, "n": 1}, {"scheme": "b", "why": "y", "n": None}]
    html = rows_table("Title & more", rows, Marker())
    heads = [(tag, given) for tag, given in Tags(html).found if tag in ("th", "td")]
    assert heads == [
        ("th", {"scope": "col", "class": "words"}),
        ("th", {"scope": "col", "class": "wordy"}),
        ("th", {"scope": "col"}),
        *[("th", {"scope": "row", "class": "words"}), ("td", {"class": "wordy"}), ("td", {})] * 2,
    ]
    assert "<caption>Title &amp; more</caption>" in html
    assert 'class="wordy"' not in rows_table("t", [{"scheme": "a", "why": "x" * 36}], Marker())
    assert rows_table("t", [], Marker()) == ""


def test_settings_are_spelt_as_in_a_settings_file():
    html = definitions("Settings", {"a": (1, True), "b": None, "c": False, "d": 0.5})
    assert html == (
        "<h4>Settings</h4><dl><dt>a</dt><dd>1, true</dd><dt>b</dt><dd>none</dd><dt>c</dt>"
        "<dd>false</dd><dt>d</dt><dd>0.5</dd></dl>"
    )
    assert definitions("Settings", {}) == ""


def test_controls_are_there_only_where_there_is_a_choice():
    ones = np.ones((1, 1))
    scheme = SchemeResults([0], asked=ones, successes=ones)
    four = dict.fromkeys("abcd", scheme)
    assert controls({"k": four}, []) == ""  # all four are highlighted
    five = controls({"k": dict.fromkeys("abcde", scheme)}, ["b", "e"])
    assert five.count("checkbox") == 5
    assert five.count(" checked ") == 2
    assert "<select" not in five
    two_kinds = controls({"k": {"a": scheme}, "l": {"a": scheme}}, [])
    assert two_kinds.count("<option>") == 2
    assert "checkbox" not in two_kinds


def test_tables_of_several_columns_are_written_in_full():
    rows = [{"scheme": "a_1", "rounds": 1234, "share": 0.5}, {"scheme": "b&c", "share": 2.0}]
    assert as_markdown(rows).splitlines()[2:] == ["| a_1 | 1234 | 0.5 |", "| b&c | - | 2 |"]
    latex = as_latex(rows, "50 % of it").splitlines()
    assert latex[2] == r"\caption{50 \% of it}"
    assert latex[3] == r"\begin{tabular}{lrr}"
    assert latex[5] == r"scheme & rounds & share \\"
    assert latex[7:9] == [r"a\_1 & 1234 & 0.5 \\", r"b\&c & - & 2 \\"]
    long = as_latex([{"a": "x" * 41, "b": "y" * 41, "c": "z" * 40}], "t").splitlines()
    assert long[3] == r"\begin{tabular}{p{0.40\linewidth}p{0.40\linewidth}r}"
