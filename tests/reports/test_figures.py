"""The print renderer: charts drawn with matplotlib."""

from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from fedcohort.lab import simulation
from fedcohort.lab.config import SimulationConfig
from fedcohort.reports.charts import (
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
    Stack,
)
from fedcohort.reports.charts.clients import labels_per_client, selections_per_class
from fedcohort.reports.charts.curves import over_rounds
from fedcohort.reports.figures import draw, save_figures
from fedcohort.reports.palette import COLOURS, Style
from fedcohort.world.classes import class_of

SETTING = SimulationConfig(
    ("e3cs-0", "e3cs-0.5", "fedcs", "random"), clients=10, cohort=3, rounds=15, seeds=3
)


@pytest.fixture(scope="module")
def results():
    return simulation.simulate(SETTING)


def small():
    return over_rounds({"CEP": {"random": np.cumsum(np.ones((2, 5)), axis=-1)}})


def svg(folder, figure):
    return next(
        path for path in save_figures({"f": figure}, folder) if path.suffix == ".svg"
    ).read_bytes()


def test_figures_are_written_as_png_and_svg_and_nothing_else(tmp_path):
    paths = save_figures({"one": small(), "two": small()}, tmp_path / "new")
    assert [path.name for path in paths] == ["one.png", "one.svg", "two.png", "two.svg"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "one.png",
        "one.svg",
        "two.png",
        "two.svg",
    ]
    for path in paths:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG\r\n")
        else:
            assert ElementTree.fromstring(path.read_bytes()).tag.endswith("svg")


def test_a_figure_that_cannot_be_saved_leaves_the_old_files(tmp_path, monkeypatch):
    save_figures({"one": small()}, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*args, **kwargs):
        raise RuntimeError("no ink")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        save_figures({"one": small()}, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_same_results_give_the_same_svg_bytes(tmp_path, results):
    assert svg(tmp_path, small()) == svg(tmp_path, small())
    counts = {name: played.counts for name, played in results.items()}
    chart = {"all": counts}
    once, again = (selections_per_class(chart, class_of(10, 4), SETTING.rates) for _ in range(2))
    assert svg(tmp_path, once) == svg(tmp_path, again)


def test_the_users_settings_of_matplotlib_neither_change_a_figure_nor_are_changed_by_it(tmp_path):
    plain = svg(tmp_path, small())
    with matplotlib.rc_context(
        {"font.size": 20, "axes.grid": False, "lines.linewidth": 9, "svg.fonttype": "none"}
    ):
        mine = dict(matplotlib.rcParams)
        assert svg(tmp_path, small()) == plain
        assert dict(matplotlib.rcParams) == mine


def chart(panels, **more):
    """Return a chart with one panel for each list of series."""
    named = {title: Panel(series) for title, series in panels.items()}
    return Chart("id", "Title", "Caption.", Axis("x axis"), Axis("y axis"), named, **more)


def test_a_line_is_drawn_in_its_style_with_a_band_if_its_spread_is_known():
    x = np.arange(1, 4)
    banded = Line("banded", Style(1, dash=1), x, x / 4, np.full(3, 0.1))
    plain = Line("plain", Style(2), x, x / 4)
    axes = draw(chart({"panel": [banded, plain]})).axes[0]
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]
    assert [line.get_color() for line in axes.lines] == [COLOURS[1], COLOURS[2]]
    assert len(axes.collections) == 1
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x axis", "y axis")


def test_a_long_line_is_thinned_and_keeps_both_ends():
    x = np.arange(1, 5001)
    (line,) = draw(chart({"panel": [Line("long", Style(0), x, x / 2)]})).axes[0].lines
    assert len(line.get_xdata()) == 400
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (1, 5000)


def test_marks_are_circles_that_the_legend_does_not_name():
    x = np.arange(1, 4)
    series = [Line("a", Style(1), x, x / 4), Marks("a", Style(1), [(2, 0.4), (3, 0.8)])]
    figure = draw(chart({"panel": series}))
    circles = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [tuple(circle.get_xydata()[0]) for circle in circles] == [(2, 0.4), (3, 0.8)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a"]


def test_every_panel_may_have_its_own_legend():
    x = np.arange(1, 4)
    panels = {title: [Line(f"line {title}", Style(0), x, x / 4)] for title in "ab"}
    figure = draw(chart(panels, layout=Layout(legend_per_panel=True)))
    assert not figure.legends
    names = [axes.get_legend().get_texts()[0].get_text() for axes in figure.axes]
    assert names == ["line a", "line b"]


def test_bars_of_a_client_add_up_to_its_samples():
    counts = np.array([[3, 0, 2], [1, 4, 0]])
    panel = draw(labels_per_client({"": counts})).axes[0]
    tops = {}
    for label, bars in enumerate(panel.containers):
        for client, bar in enumerate(bars):
            assert bar.get_height() == counts[client, label]
            assert bar.get_y() == counts[client, :label].sum()
            tops[client] = bar.get_y() + bar.get_height()
    assert tops == {0: 5, 1: 5}


def test_stacked_bars_of_named_clients_have_their_names_and_colours():
    layers = [Stack("arrived", ["ann", "bob"], np.array([1, 2]), Style(2))]
    axes = draw(chart({"all": layers})).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["ann", "bob"]
    colour = matplotlib.colors.to_hex(axes.patches[0].get_facecolor())
    assert colour == COLOURS[2].lower()


def test_boxes_of_several_kinds_of_run_have_a_panel_each():
    boxes = [Boxes("random", Style(0), ["0.1"], [np.array([1, 2, 3])])]
    figure = draw(chart({"iid": boxes, "shards": boxes}))
    assert [axes.get_title() for axes in figure.axes] == ["random\niid", "random\nshards"]


def test_boxes_of_clients_that_were_never_asked_are_drawn_without_a_warning():
    boxes = [Boxes("random", Style(0), ["0.1"], [np.array([0, 0, 0])])]
    axes = draw(chart({"iid": boxes})).axes[0]
    assert axes.get_ylim() == (-0.03, 1.05)


def test_bars_and_dots_are_drawn_where_their_values_are():
    nan = float("nan")
    bars = [Bar("a", Style(0), 2.0, 0.5), Bar("b", Style(1), 3.0, nan)]
    axes = draw(chart({"kind": bars})).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2, 3]

    dots = [Dot("a", Style(0), 0.5, 0.7, 0.1, nan)]
    axes = draw(chart({"kind": dots})).axes[0]
    assert [tuple(line.get_xydata()[0]) for line in axes.lines] == [(0.5, 0.7)]


def test_grouped_dots_stand_side_by_side_in_their_category():
    nan = float("nan")
    labels = ["10%", "90%"]
    series = [
        GroupedDots("a", Style(0), labels, np.array([0.5, 0.7]), np.array([0.1, nan])),
        GroupedDots("b", Style(1), labels, np.array([0.4, nan]), np.array([0.1, nan])),
    ]
    figure = draw(chart({"kind": series}))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == labels
    first, second = (line.get_xydata() for line in axes.lines)
    np.testing.assert_allclose(first, [[-1 / 6, 0.5], [5 / 6, 0.7]])
    np.testing.assert_allclose(second, [[1 / 6, 0.4], [7 / 6, nan]])
    assert [line.get_color() for line in axes.lines] == [COLOURS[0], COLOURS[1]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_a_heat_map_has_a_colour_bar_and_a_circle_for_every_marked_cell():
    marked = np.array([[False, True], [True, True], [False, False]])
    values = np.linspace(0, 1, 6).reshape(3, 2)
    heat_map = HeatMap("e3cs-0", np.array([1, 5]), [0, 1, 2], values, marked)
    figure = draw(chart({"e3cs-0": [heat_map]}))
    assert [axes.get_ylabel() for axes in figure.axes] == ["y axis", "probability"]
    circles = figure.axes[0].collections[-1].get_offsets()
    assert circles.tolist() == [[5, 0], [1, 1], [5, 1]]
