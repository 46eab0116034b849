from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedcohort.lab.simulation import Simulation
from fedcohort.lab.simulation_result import SimulationResult
from fedcohort.paper import regret
from fedcohort.paper.theorem import SIMULATION, margins_of, regret_chart, summarise
from fedcohort.reports.figures import draw


def test_the_table_of_regrets_says_which_theorem_applies_and_none_that_applies_is_broken(
    monkeypatch,
):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 400)
    config = replace(SIMULATION.config, rounds=400, seeds=4)
    results = regret.play(config)
    rows = summarise(config, results)
    assert len(rows) == 4 * 2 * 3 + 3
    applies = {row["case"] for row in rows if row["corrected theorem applies"]}
    assert applies == {
        *(f"e3cs-{phi}, robust" for phi in ("0", "0.5", "0.8")),
        *(f"e3cs-{phi}, exact" for phi in ("0.5", "0.8")),
        "switch, floor of the proof",
        "switch, robust",
    }
    for row in rows:
        assert row["regret, clairvoyant"] > 0
        assert row["within paper's bound"] == (row["regret, best fixed"] <= row["paper's bound"])
        if row["corrected theorem applies"] and not row["case"].startswith("switch"):
            assert (
                row["regret, best fixed"] + 2 * row["standard error"]
                <= row["corrected bound"]
                <= row["paper's bound"]
            )
        elif not row["corrected theorem applies"]:
            assert np.isnan(row["corrected bound"])


def test_the_regret_figure_has_a_panel_per_floor_and_one_for_the_switch_with_regrets_and_bounds(
    monkeypatch,
):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    config = replace(SIMULATION.config, clients=8, cohort=3, rounds=40, seeds=2)
    panels = draw(regret_chart(config, regret.play(config))).axes
    assert [panel.get_title() for panel in panels] == [*config.selectors, "switch"]
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
    config = replace(
        SIMULATION.config, selectors=("e3cs-0.5",), clients=8, cohort=3, rounds=40, seeds=2
    )
    for panel in draw(regret_chart(config, regret.play(config))).axes:
        assert {line.get_xdata()[0] for line in panel.lines} == {1}


def test_the_row_of_a_case_is_the_one_worked_out_by_hand(monkeypatch):
    # K = 2, k = 1, no floor, three rounds. One client answers in rounds 0 and 1, both in round 2.
    # A clairvoyant earns 1 in each round; two seeds earn 1 and 2. The best fixed choice is the
    # client that always answers. Theorem 1 at eta = 1/2 allows 3 / 2 + 4 ln 2.
    world = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    case = regret.Case("by hand", "exact", np.zeros(3), 1, 0.5, world)
    monkeypatch.setattr(regret, "cases", lambda config: [case])
    successes = np.array([[0, 0, 1], [1, 0, 1]])
    answering = np.array([[1, 1, 2], [1, 1, 2]])
    played = SimulationResult(successes, answering, successes.astype(float), np.zeros((2, 2), int))
    (row,) = summarise(SIMULATION.config, {case.name: played})
    assert row["regret, clairvoyant"] == pytest.approx(((3 - 1) + (3 - 2)) / 2)
    assert row["regret, best fixed"] == pytest.approx(((3 - 1) + (3 - 2)) / 2)
    assert row["paper's bound"] == pytest.approx(1.5 + 4 * np.log(2))
    assert row["within paper's bound"]

    # Eight rounds in which one client answers and the other is asked: regret 8, bound 4 + 4 ln 2.
    case = regret.Case("by hand", "exact", np.zeros(8), 1, 0.5, np.tile([1.0, 0.0], (8, 1)))
    monkeypatch.setattr(regret, "cases", lambda config: [case])
    ones = np.ones((1, 8), int)
    played = SimulationResult(0 * ones, ones, 0.0 * ones, np.zeros((1, 2), int))
    (row,) = summarise(SIMULATION.config, {case.name: played})
    assert (row["regret, best fixed"], row["within paper's bound"]) == (8, False)


def test_the_margin_of_the_papers_bound_is_the_bound_less_the_regret(monkeypatch):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    config = replace(SIMULATION.config, rounds=40, seeds=3)
    results = regret.play(config)
    stored = Simulation(Path(), {}, config, results)
    margins = margins_of(stored)
    for case, row in zip(regret.cases(config), summarise(config, results), strict=True):
        assert len(margins[case.name]) == results[case.name].successes.shape[0]
        expected = row["paper's bound"] - row["regret, best fixed"]
        assert np.mean(margins[case.name]) == pytest.approx(expected)
