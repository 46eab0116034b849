import numpy as np
import pytest

from fedcohort.reports.charts.tradeoffs import fairness_against_accuracy, wasted_work
from fedcohort.reports.findings import SchemeResults

NAN = float("nan")


def scheme(**more):
    return SchemeResults([0, 1], asked=np.full((2, 2), 4.0), successes=np.ones((2, 2)), **more)


def test_wasted_work_is_a_bar_per_scheme_with_its_spread():
    schemes = {"a": scheme(wasted=np.array([10.0, 14.0])), "b": scheme()}
    chart = wasted_work({"kind": schemes})
    (bar,) = chart.panels["kind"].series
    assert (bar.name, bar.height) == ("a", 12)
    assert bar.sd == pytest.approx(8**0.5)
    assert chart.panels["kind"].words == "Wasted client-seconds: a 12 ± 3."


def test_the_spread_is_explained_where_there_is_one():
    counts = np.array([[2, 2], [4, 0]])
    two = scheme(wasted=np.array([10.0, 14.0]), counts=counts)
    one = SchemeResults(
        [0], two.asked[:1], two.successes[:1], counts=counts[:1], wasted=np.array([1.0])
    )
    for chart in (wasted_work, fairness_against_accuracy):
        assert "standard deviation" in chart({"kind": {"a": two, "b": two}}).caption
        assert "standard deviation" not in chart({"kind": {"a": one, "b": one}}).caption


def test_fairness_stands_against_the_accuracy_of_the_seeds_that_have_one():
    counts = np.array([[2, 2], [4, 0]])
    schemes = {
        "a": scheme(counts=counts, accuracy=np.array([[0.1, 0.5], [0.1, NAN]])),
        "b": scheme(counts=counts, accuracy=np.array([[0.1, 0.7], [0.1, 0.9]])),
    }
    chart = fairness_against_accuracy({"kind": schemes})
    first, second = chart.panels["kind"].series
    assert chart.y.title == "final accuracy"
    assert (first.x, first.y) == (0.75, 0.5)
    assert np.isnan(first.sd_y)
    assert second.y == pytest.approx(0.8)


def test_fairness_stands_against_success_where_nothing_was_trained():
    counts = np.array([[2, 2], [4, 0]])
    chart = fairness_against_accuracy({"kind": {name: scheme(counts=counts) for name in "ab"}})
    assert chart.y.title == "success ratio"
    assert [dot.y for dot in chart.panels["kind"].series] == [0.25, 0.25]


def test_one_scheme_alone_has_nothing_to_be_compared_with():
    counts = np.array([[2, 2], [4, 0]])
    assert not fairness_against_accuracy({"kind": {"a": scheme(counts=counts)}}).panels
    assert not wasted_work({"kind": {"a": scheme()}}).panels


def test_the_arms_of_a_cross_are_the_spreads_of_fairness_and_of_accuracy():
    counts = np.array([[2, 2], [4, 0]])  # Jain's index 1 and 1/2
    accuracy = np.array([[0.1, 0.7], [0.1, 0.9]])
    schemes = {name: scheme(counts=counts, accuracy=accuracy) for name in "ab"}
    (dot, _) = fairness_against_accuracy({"kind": schemes}).panels["kind"].series
    assert dot.sd_x == pytest.approx(0.5 / 2**0.5)
    assert dot.sd_y == pytest.approx(0.2 / 2**0.5)
