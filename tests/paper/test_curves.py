import numpy as np
import pytest
from made import result

from fedcohort.paper import published
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.paper.curves import longest_runs, paper_marks, sample_numbers, sample_rows
from fedcohort.paper.results import Results
from fedcohort.paper.setting import task_config
from fedcohort.reports.figures import draw

figure6 = ARTEFACTS["figure6"]


def test_only_runs_that_came_the_furthest_are_drawn():
    curves = longest_runs(
        [
            result(accuracy=(0.1, 0.2)),
            result(accuracy=(0.5,), rounds=2),
            result(accuracy=(0.3, 0.4)),
        ]
    )
    np.testing.assert_allclose(curves, [[0.1, 0.2], [0.3, 0.4]], rtol=1e-6)


def test_a_few_points_of_each_curve_end_with_the_last_round():
    (row,) = sample_rows({"random": np.linspace(0.01, 1, 100)[None]})
    assert row == {"scheme": "Random"} | {f"{t}": f"{t:.1f}" for t in range(10, 101, 10)}
    (short,) = sample_rows({"random": np.array([[0.1, 0.2]])})
    assert short == {"scheme": "Random", "1": "10.0", "2": "20.0"}


@pytest.fixture
def runs():
    """Return two seeds of Random on CIFAR-10."""
    curve = np.linspace(0.1, 0.7, 2500)
    return [result(task_config("cifar10", {}), curve, first_seed=seed) for seed in (0, 1)]


def test_figure6_draws_the_panels_that_were_run_with_the_papers_points(runs):
    figure = draw(figure6.report(Results(runs), {}).figures["figure6"])
    (panel,) = figure.axes
    assert panel.get_title() == "iid, FedAvg"
    points = [tuple(line.get_xydata()[0]) for line in panel.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, [(121, 0.45), (251, 0.55), (515, 0.65), (2500, 0.7146)])


def test_only_the_papers_own_data_and_rounds_have_the_papers_points():
    curve = np.linspace(0.1, 0.7, 100)
    fewer = {"rounds": 100}
    short = figure6.report(Results([result(task_config("cifar10", fewer), curve)]), fewer)
    (panel,) = draw(short.figures["figure6"]).axes
    points = [tuple(line.get_xydata()[0]) for line in panel.lines if line.get_marker() == "o"]
    assert points == [(121, 0.45), (251, 0.55), (515, 0.65)]  # the end is that of other runs
    other = {"dataset": "digits", "rounds": 100}
    digits = figure6.report(Results([result(task_config("cifar10", other), curve)]), other)
    assert any(note.startswith("Circles") for note in short.notes)
    assert not any(note.startswith("Circles") for note in digits.notes)
    (panel,) = draw(digits.figures["figure6"]).axes
    assert [line.get_label() for line in panel.lines] == ["random"]


def test_without_results_there_is_no_figure():
    assert figure6.report(Results([]), {}).figures == {}


def test_the_points_of_a_curve_in_numbers_are_those_of_its_rounds():
    two_seeds = np.array([[0.1, 0.2, 0.6], [0.3, 0.2, 0.8]])
    rows = sample_numbers({"random": two_seeds})
    assert [row["round"] for row in rows] == [1, 2, 3]
    assert [row["mean"] for row in rows] == pytest.approx([0.2, 0.2, 0.7])
    assert rows[2]["sd"] == pytest.approx(0.1 * 2**0.5)
    assert {row["runs"] for row in rows} == {2}


@pytest.mark.parametrize("task", published.ROUNDS)
def test_what_the_papers_runs_never_reached_has_no_mark(task):
    config = task_config(task, {})
    cells = {}
    for selector, partition, mu in published.table(task):
        cells[selector, partition, "paper", mu] = []
    never = [values for values in published.table(task).values() if np.inf in values.values()]
    assert never
    for panel in paper_marks(config, cells).values():
        for points in panel.values():
            assert np.isfinite(points).all()


def test_shorter_runs_of_e3cs_inc_have_no_marks_because_its_quota_turns_earlier():
    def schemes(config):
        cells = {(name, "iid", "paper", 0.0): [] for name in ("e3cs-inc", "random")}
        (panel,) = paper_marks(config, cells).values()
        return {name: max(points)[0] for name, points in panel.items()}

    assert schemes(task_config("cifar10", {})) == {"e3cs-inc": 2500, "random": 2500}
    assert set(schemes(task_config("cifar10", {"rounds": 800}))) == {"random"}
