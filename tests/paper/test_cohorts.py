import numpy as np
import pytest
from made import result

from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.results import Results
from fedcohort.paper.setting import task_config
from fedcohort.reports.figures import draw

figure7 = ARTEFACTS["figure7"]


@pytest.fixture
def runs():
    """Return two seeds of Random on CIFAR-10, and one with another cohort that is not finished."""
    config = task_config("cifar10", {})
    curve = np.linspace(0.1, 0.7, 2500)
    seeds = [result(config, curve, first_seed=seed) for seed in (0, 1)]
    return [*seeds, result(config, curve[:300], rounds=2500, cohort=30)]


def test_figure7_has_a_panel_for_each_cohort_and_says_what_was_not_run(runs):
    report = figure7.report(Results(runs), {})
    panels = draw(report.figures["figure7"]).axes
    assert [panel.get_title() for panel in panels] == [
        f"cifar10, T=2500, iid, k = {k}" for k in (20, 30)
    ]
    assert panels[0].axis() == panels[1].axis()  # equal scales, though the second run is shorter
    assert "Not run: cifar10, k=10, T=2500." in report.notes
    rows = {(row["scheme"], row["k"]): row for row in report.tables["cifar10, T=2500, iid"]}
    assert rows["Random", 30]["@45"] == "not by 300"
    assert rows["Random", 30]["final"] == "unfinished"
    assert rows["FedCS", 20]["@45"] == "not run"


def test_both_tasks_of_figure7_have_their_panels_when_played_on_the_same_data():
    other = {"dataset": "digits"}
    runs = []
    for config in figure7.training(other):
        runs.append(result(config, np.linspace(0.1, 0.7, config.rounds)))
    chart = figure7.report(Results(runs), other).figures["figure7"]
    assert list(chart.panels) == [
        f"digits, T={rounds}, iid, k = {k}" for rounds in (2500, 400) for k in (10, 20, 30)
    ]


def test_without_results_there_is_no_figure():
    assert figure7.report(Results([]), {}).figures == {}
