"""The print renderer: charts drawn with matplotlib."""

import io
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from fedcohort.lab import simulation
from fedcohort.lab.config import SimulationConfig
from fedcohort.paper import figure3, figure4, regret
from fedcohort.reports.charts import (
    Axis,
    Bar,
    Boxes,
    Chart,
    Dot,
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


def test_figure_3_has_a_panel_per_selector_and_a_box_per_class(results):
    figures = figure3.report(SETTING, results)
    assert list(figures) == ["figure3"]
    panels = draw(figures["figure3"]).axes
    assert [panel.get_title() for panel in panels] == list(SETTING.selectors)
    for panel in panels:
        assert len(panel.patches) == 4
        assert [label.get_text() for label in panel.get_xticklabels()] == [
            "0.1",
            "0.3",
            "0.6",
            "0.9",
        ]


def test_figure_3_shows_the_medians_of_all_seeds_pooled_on_equal_scales(results):
    panels = draw(figure3.report(SETTING, results)["figure3"]).axes
    assert len({panel.get_ylim() for panel in panels}) == 1
    classes = class_of(10, 4)
    for panel in panels:
        counts = results[panel.get_title()].counts
        medians = [
            line.get_ydata()[0]
            for line in panel.lines
            if line.get_color() == "black" and line.get_linewidth() == 1.2
        ]
        assert medians == [np.median(counts[:, classes == c]) for c in range(4)]
        assert panel.get_ylim()[1] > counts.max()


def test_figure_4_has_two_panels_with_a_line_and_a_band_per_selector(results):
    figures = figure4.report(SETTING, results)
    assert list(figures) == ["figure4"]
    figure = draw(figures["figure4"])
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["success ratio", "CEP"]
    for panel in panels:
        assert [line.get_label() for line in panel.lines] == list(SETTING.selectors)
        assert len(panel.collections) == len(SETTING.selectors)
    assert len(figure.legends) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(SETTING.selectors)


def test_figure_4_draws_means_over_seeds_from_round_one(results):
    ratio, cep = draw(figure4.report(SETTING, results)["figure4"]).axes
    for lines, asked in ((cep.lines, 1), (ratio.lines, 3 * np.arange(1, 16))):
        for line in lines:
            mean = results[line.get_label()].successes.mean(axis=0)
            np.testing.assert_allclose(line.get_ydata(), np.cumsum(mean) / asked)
            assert line.get_xdata().tolist() == list(range(1, 16))


def test_a_selector_has_the_same_colour_in_both_figures(results):
    boxes = draw(figure3.report(SETTING, results)["figure3"]).axes
    lines = draw(figure4.report(SETTING, results)["figure4"]).axes[0].lines
    for panel, line in zip(boxes, lines, strict=True):
        assert panel.patches[0].get_facecolor()[:3] == pytest.approx(
            matplotlib.colors.to_rgb(line.get_color())
        )


def test_one_seed_one_round_and_one_selector_can_be_drawn():
    setting = SimulationConfig(("random",), clients=4, cohort=1, rounds=1, seeds=1)
    played = simulation.simulate(setting)
    for figure in (
        draw(figure3.report(setting, played)["figure3"]),
        draw(figure4.report(setting, played)["figure4"]),
    ):
        figure.savefig(
            io.BytesIO()
        )  # a band without spread and a box of one point raise no warning
        assert len(figure.axes) == (1 if figure.get_supxlabel() else 2)


def test_the_regret_figure_has_a_panel_per_floor_and_one_for_the_switch_with_regrets_and_bounds(
    monkeypatch,
):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    setting = replace(regret.SETTING, clients=8, cohort=3, rounds=40, seeds=2)
    panels = draw(regret.report(setting, regret.run(setting))["regret"]).axes
    assert [panel.get_title() for panel in panels] == [*setting.selectors, "switch"]
    for panel in panels:
        variants = (
            ["no floor", "floor of the proof"]
            if panel.get_title() == "switch"
            else ["exact", "successive"]
        )
        labels = [line.get_label() for line in panel.lines]
        assert labels[:4] == [*variants, "robust", "paper's bound"]


def test_curves_and_bounds_of_the_regret_figure_share_the_first_round(monkeypatch):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    setting = replace(
        regret.SETTING, selectors=("e3cs-0.5",), clients=8, cohort=3, rounds=40, seeds=2
    )
    for panel in draw(regret.report(setting, regret.run(setting))["regret"]).axes:
        assert {line.get_xdata()[0] for line in panel.lines} == {1}


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
    assert [axes.get_title() for axes in figure.axes] == ["random, iid", "random, shards"]


def test_bars_and_dots_are_drawn_where_their_values_are():
    nan = float("nan")
    bars = [Bar("a", Style(0), 2.0, 0.5), Bar("b", Style(1), 3.0, nan)]
    axes = draw(chart({"kind": bars})).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2, 3]

    dots = [Dot("a", Style(0), 0.5, 0.7, 0.1, nan)]
    axes = draw(chart({"kind": dots})).axes[0]
    assert [tuple(line.get_xydata()[0]) for line in axes.lines] == [(0.5, 0.7)]


def test_a_heat_map_has_a_colour_bar_and_a_circle_for_every_marked_cell():
    marked = np.array([[False, True], [True, True], [False, False]])
    values = np.linspace(0, 1, 6).reshape(3, 2)
    heat_map = HeatMap("e3cs-0", np.array([1, 5]), [0, 1, 2], values, marked)
    figure = draw(chart({"e3cs-0": [heat_map]}))
    assert [axes.get_ylabel() for axes in figure.axes] == ["y axis", "probability"]
    circles = figure.axes[0].collections[-1].get_offsets()
    assert circles.tolist() == [[5, 0], [1, 1], [5, 1]]
