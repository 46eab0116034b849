import io
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from fedcohort.lab import simulation
from fedcohort.lab.simulation import SimulationConfig
from fedcohort.paper import figure3, figure4, regret
from fedcohort.reports.charts.clients import selections_per_class
from fedcohort.reports.charts.curves import over_rounds
from fedcohort.reports.figures import draw, save_figures
from fedcohort.reports.palette import FIRST_SCHEMES, scheme_style
from fedcohort.reports.report import Report, write
from fedcohort.reports.tables import as_tables
from fedcohort.reports.words import format_value
from fedcohort.selection.registry import PAPER_SELECTORS
from fedcohort.world.classes import class_of

SETTING = SimulationConfig(
    ("e3cs-0", "e3cs-0.5", "fedcs", "random"), clients=10, cohort=3, rounds=15, seeds=3
)


@pytest.fixture(scope="module")
def results():
    return simulation.run(SETTING)


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
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(
        SETTING.selectors
    )


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


def test_the_papers_selectors_have_colours_of_their_own():
    assert set(PAPER_SELECTORS) <= set(FIRST_SCHEMES)
    assert len({scheme_style(name).colour for name in FIRST_SCHEMES}) == len(FIRST_SCHEMES)
    assert scheme_style("someone new") == scheme_style("someone new")


def test_one_seed_one_round_and_one_selector_can_be_drawn():
    setting = SimulationConfig(("random",), clients=4, cohort=1, rounds=1, seeds=1)
    played = simulation.run(setting)
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


def test_values_are_shown_as_a_reader_wants_them():
    values = [
        True,
        False,
        None,
        float("nan"),
        0.123456,
        999.94,
        1234567.8,
        -4321.0,
        20,
        "12/13/14",
        0.0,
    ]
    assert [format_value(value) for value in values] == [
        *("yes", "no", "-", "-", "0.123", "1,000", "1,234,568", "-4,321", "20", "12/13/14", "0")
    ]


def test_a_table_has_the_keys_as_header_numbers_to_the_right_and_no_rows_no_columns():
    (table,) = as_tables(
        [{"case": "a", "eta": 0.5, "asked": "1/2/3"}, {"case": "b", "eta": 2.0, "asked": "4/5/6"}],
        width=80,
    )
    assert [(str(column.header), column.justify) for column in table.columns] == [
        ("case", "left"),
        ("eta", "right"),
        ("asked", "right"),
    ]
    assert table.row_count == 2
    assert [len(table.columns) for table in as_tables([], width=80)] == [0]


def test_the_parts_of_a_table_repeat_as_many_columns_as_tell_the_rows_apart():
    rows = [
        {"scheme": "E3CS-0", "variant": word, **{f"column {place}": 1e6 for place in range(9)}}
        for word in ("one", "two")
    ]
    parts = as_tables(rows, 60)
    assert len(parts) > 1
    assert [[str(column.header) for column in part.columns[:2]] for part in parts] == [
        ["scheme", "variant"]
    ] * len(parts)
    alike = as_tables([rows[0], rows[0]], 60)
    assert all(str(part.columns[0].header) == "scheme" for part in alike)


def test_latex_wraps_long_columns_and_prints_the_notes(tmp_path):
    rows = [{"claim": "a", "value": "1 ± 2", "sentence": "words " * 10}]
    write(Report("name", "Title", {"table": rows}, ["*: outside 2 % of it."]), tmp_path)
    text = (tmp_path / "name.tex").read_text()
    assert r"\begin{tabular}{lrp{0.80\linewidth}}" in text
    assert text.endswith("{\\footnotesize *: outside 2 \\% of it.\\par}\n")


ROWS = [
    {
        "the case": f"case {case}, [bold]",
        **{f"column {place}": 1234567.0 * case for place in range(9)},
    }
    for case in (1, 2)
]


@pytest.mark.parametrize("width", [33, 60, 80, 200])
def test_a_table_that_is_too_wide_is_cut_between_columns_and_nothing_of_it_is_lost(width):
    console = Console(width=width, record=True, file=io.StringIO())
    for table in as_tables(ROWS, width, "[a title]"):
        console.print(table)
    text = console.export_text()
    assert text.count("[a title]") == 1
    assert max(len(line) for line in text.splitlines()) <= width
    for row in ROWS:
        for value in list(row.values())[1:]:
            assert text.count(format_value(value)) == 9
    assert text.count("case 1, [bold]") == text.count("case 2, [bold]") >= 1
    assert (text.count("case 1, [bold]") == 1) == (width == 200)
