"""Sentences that several pages share, and results in their corners."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.lab.config import SimulationConfig
from fedcohort.reports.charts.groups import class_labels
from fedcohort.reports.findings import Findings, SchemeResults
from fedcohort.reports.pages.wording import describe_failures, list_rates, list_seeds

CONFIG = SimulationConfig(("random",), clients=8, cohort=3, rounds=5, seeds=2)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "Clients fail: by class, they answer 10\u00a0%, 30\u00a0%, 60\u00a0%, 90\u00a0% "
            "of the time",
        ),
        (
            {"rates": (0.5, 1.0)},
            "Clients fail: by class, they answer 50\u00a0%, 100\u00a0% of the time",
        ),
        (
            {"world": "markov", "world_options": ("cycle=6",)},
            "Clients fail (world markov, cycle=6): the rates of their classes are "
            "10\u00a0%, 30\u00a0%, 60\u00a0%, 90\u00a0%",
        ),
    ],
)
def test_how_clients_fail_is_said_in_a_sentence(changes, sentence):
    assert describe_failures(replace(CONFIG, **changes)) == sentence


def test_a_recorded_world_is_named_by_its_file(tmp_path):
    path = tmp_path / "answers.npz"
    np.savez(path, answers=np.ones((5, 8), dtype=bool))
    config = replace(CONFIG, world="recorded", world_file=str(path))
    assert describe_failures(config) == f"Clients fail as recorded in {path}"


def test_seeds_and_rates_are_listed():
    assert list_seeds(4, 1) == "4"
    assert list_seeds(4, 3) == "4 to 6"
    assert list_rates((0.125, 1.0)) == "12.5\u00a0%, 100\u00a0%"


def test_classes_of_equal_rates_are_told_apart_by_their_numbers():
    assert class_labels([0.101, 0.104, 0.9]) == [
        "10\u00a0% (class 1)",
        "10\u00a0% (class 2)",
        "90\u00a0% (class 3)",
    ]
    assert class_labels([0.1, 0.2]) == ["10\u00a0%", "20\u00a0%"]


def test_what_was_not_recorded_is_none_and_left_out_of_charts():
    ones = np.ones((2, 3))
    bare = SchemeResults([0, 1], asked=2 * ones, successes=ones)
    full = replace(bare, accuracy=np.array([[0.1, 0.5, 0.4], [0.1, 0.2, 0.3]]))
    assert (bare.fairness, bare.final_accuracy, bare.rounds_to(0.5)) == (None, None, None)
    np.testing.assert_array_equal(full.rounds_to(0.5), [2, np.nan])
    assert full.final_accuracy.tolist() == [0.4, 0.3]
    findings = Findings("t", {"k": {"bare": bare, "full": full}, "l": {"bare": bare}})
    found = findings.collect(lambda scheme: scheme.accuracy)
    assert {kind: list(schemes) for kind, schemes in found.items() if schemes} == {"k": ["full"]}
