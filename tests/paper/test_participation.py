import io
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from made import result

from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import simulate
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.participation import (
    SIMULATION,
    powd_runs,
    selections_chart,
    success_chart,
)
from fedcohort.paper.results import Results
from fedcohort.reports.figures import draw
from fedcohort.world.classes import class_of

CONFIG = SimulationConfig(
    ("e3cs-0", "e3cs-0.5", "fedcs", "random"), clients=10, cohort=3, rounds=15, seeds=3
)


@pytest.fixture(scope="module")
def results():
    return simulate(CONFIG)


def test_figure_3_has_a_panel_per_selector_and_a_box_per_class(results):
    panels = draw(selections_chart(CONFIG, results)).axes
    assert [panel.get_title() for panel in panels] == list(CONFIG.selectors)
    for panel in panels:
        assert len(panel.patches) == 4
        assert [label.get_text() for label in panel.get_xticklabels()] == [
            "0.1",
            "0.3",
            "0.6",
            "0.9",
        ]


def test_figure_3_shows_the_medians_of_all_seeds_pooled_on_equal_scales(results):
    panels = draw(selections_chart(CONFIG, results)).axes
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
    figure = draw(success_chart(CONFIG, results))
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["success ratio", "CEP"]
    for panel in panels:
        assert [line.get_label() for line in panel.lines] == list(CONFIG.selectors)
        assert len(panel.collections) == len(CONFIG.selectors)
    assert len(figure.legends) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(CONFIG.selectors)


def test_figure_4_draws_means_over_seeds_from_round_one(results):
    ratio, cep = draw(success_chart(CONFIG, results)).axes
    for lines, asked in ((cep.lines, 1), (ratio.lines, 3 * np.arange(1, 16))):
        for line in lines:
            mean = results[line.get_label()].successes.mean(axis=0)
            np.testing.assert_allclose(line.get_ydata(), np.cumsum(mean) / asked)
            assert line.get_xdata().tolist() == list(range(1, 16))


def test_a_selector_has_the_same_colour_in_both_figures(results):
    boxes = draw(selections_chart(CONFIG, results)).axes
    lines = draw(success_chart(CONFIG, results)).axes[0].lines
    for panel, line in zip(boxes, lines, strict=True):
        assert panel.patches[0].get_facecolor()[:3] == pytest.approx(
            matplotlib.colors.to_rgb(line.get_color())
        )


def test_one_seed_one_round_and_one_selector_can_be_drawn():
    config = SimulationConfig(("random",), clients=4, cohort=1, rounds=1, seeds=1)
    played = simulate(config)
    for figure in (
        draw(selections_chart(config, played)),
        draw(success_chart(config, played)),
    ):
        figure.savefig(
            io.BytesIO()
        )  # a band without spread and a box of one point raise no warning
        assert len(figure.axes) == (1 if figure.get_supxlabel() else 2)


def test_figures_3_and_4_play_the_papers_setting_with_the_papers_sampler():
    config = SIMULATION.config
    assert (config.clients, config.cohort, config.rounds, config.eta) == (100, 20, 2500, 0.5)
    assert config.rates == (0.1, 0.3, 0.6, 0.9)
    assert config.sampler == "successive"


def test_figures_3_and_4_share_one_simulation():
    assert ARTEFACTS["figure3"].simulation is SIMULATION
    assert ARTEFACTS["figure4"].simulation is SIMULATION


def test_only_finished_runs_of_pow_d_stand_beside_a_simulation():
    config = replace(SIMULATION.config, rounds=3)
    made = {"selectors": ("pow-d",), "partitions": ("primary-label",), "rounds": 3}
    runs = [
        result(accuracy=(0.1, 0.2, 0.3), first_seed=0, **made),
        result(accuracy=(0.1, 0.2), first_seed=1, **made),
    ]
    found = powd_runs(Results(runs), {}, config)
    assert [run.config.first_seed for run in found] == [0]
