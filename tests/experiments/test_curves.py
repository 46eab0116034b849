import numpy as np
import pytest
from made import result

from fedcohort.paper import figure6, figure7
from fedcohort.paper.artefact import Pool
from fedcohort.paper.curves import sampled, stacked
from fedcohort.paper.setting import setting
from fedcohort.reports.figures import draw


def test_only_runs_that_came_the_furthest_are_drawn():
    curves = stacked(
        [
            result(accuracy=(0.1, 0.2)),
            result(accuracy=(0.5,), rounds=2),
            result(accuracy=(0.3, 0.4)),
        ]
    )
    np.testing.assert_allclose(curves, [[0.1, 0.2], [0.3, 0.4]], rtol=1e-6)


def test_a_few_points_of_each_curve_end_with_the_last_round():
    (row,) = sampled({"random": np.linspace(0.01, 1, 100)[None]})
    assert row == {"scheme": "Random"} | {f"{t}": f"{t:.1f}" for t in range(10, 101, 10)}
    (short,) = sampled({"random": np.array([[0.1, 0.2]])})
    assert short == {"scheme": "Random", "1": "10.0", "2": "20.0"}


@pytest.fixture
def runs():
    """Return two seeds of Random on CIFAR-10, and one with another cohort that is not finished."""
    of = setting("cifar10", {})
    curve = np.linspace(0.1, 0.7, 2500)
    seeds = [result(of, curve, first_seed=seed) for seed in (0, 1)]
    return [*seeds, result(of, curve[:300], rounds=2500, cohort=30)]


def test_figure6_draws_the_panels_that_were_run_with_the_papers_points(runs):
    figure = draw(figure6.report({}, Pool(runs)).figures["figure6"])
    (panel,) = figure.axes
    assert panel.get_title() == "iid, FedAvg"
    points = [tuple(line.get_xydata()[0]) for line in panel.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, [(121, 0.45), (251, 0.55), (515, 0.65), (2500, 0.7146)])


def test_only_the_papers_own_data_and_rounds_have_the_papers_points():
    curve = np.linspace(0.1, 0.7, 100)
    short = figure6.report(
        {"rounds": 100}, Pool([result(setting("cifar10", {"rounds": 100}), curve)])
    )
    (panel,) = draw(short.figures["figure6"]).axes
    points = [tuple(line.get_xydata()[0]) for line in panel.lines if line.get_marker() == "o"]
    assert points == [(121, 0.45), (251, 0.55), (515, 0.65)]  # the end is that of other runs
    other = {"dataset": "digits", "rounds": 100}
    digits = figure6.report(other, Pool([result(setting("cifar10", other), curve)]))
    assert any(note.startswith("Circles") for note in short.notes)
    assert not any(note.startswith("Circles") for note in digits.notes)
    (panel,) = draw(digits.figures["figure6"]).axes
    assert [line.get_label() for line in panel.lines] == ["random"]


def test_figure7_has_a_panel_for_each_cohort_and_says_what_was_not_run(runs):
    made = figure7.report({}, Pool(runs))
    panels = draw(made.figures["figure7"]).axes
    assert [panel.get_title() for panel in panels] == [
        f"cifar10, T=2500, iid, k = {k}" for k in (20, 30)
    ]
    assert panels[0].axis() == panels[1].axis()  # equal scales, though the second run is shorter
    assert "Not run: cifar10, k=10, T=2500." in made.notes
    rows = {(row["scheme"], row["k"]): row for row in made.tables["cifar10, T=2500, iid"]}
    assert rows["Random", 30]["@45"] == "not by 300"
    assert rows["Random", 30]["final"] == "unfinished"
    assert rows["FedCS", 20]["@45"] == "not run"


def test_both_tasks_of_figure7_have_their_panels_when_played_on_the_same_data():
    other = {"dataset": "digits"}
    runs = [result(of, np.linspace(0.1, 0.7, of.rounds)) for of in figure7.settings(other)]
    chart = figure7.report(other, Pool(runs)).figures["figure7"]
    assert list(chart.panels) == [
        f"digits, T={rounds}, iid, k = {k}" for rounds in (2500, 400) for k in (10, 20, 30)
    ]


def test_without_results_there_is_no_figure():
    assert figure6.report({}, Pool([])).figures == figure7.report({}, Pool([])).figures == {}
