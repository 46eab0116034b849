import numpy as np
import pytest

from fedcohort.reports.charts.groups import accuracy_per_class, accuracy_per_label
from fedcohort.reports.findings import SchemeResults

NAN = float("nan")


def scheme(by_class=None):
    if by_class is not None:
        by_class = np.array(by_class)
    ones = np.ones((2, 2))
    return SchemeResults([0, 1], asked=4 * ones, successes=ones, class_accuracy=by_class)


def test_every_scheme_has_a_dot_per_class_with_its_spread():
    schemes = {"a": scheme([[0.2, 0.6, NAN], [0.4, NAN, NAN]]), "b": scheme()}
    chart = accuracy_per_class({"kind": schemes}, (0.1, 0.5, 0.9))
    (dots,) = chart.panels["kind"].series
    assert (dots.name, dots.labels) == ("a", ["10\u00a0%", "50\u00a0%", "90\u00a0%"])
    np.testing.assert_allclose(dots.y, [0.3, 0.6, NAN])
    assert dots.sd[0] == pytest.approx(0.02**0.5)
    assert np.isnan(dots.sd[1:]).all()
    assert chart.panels["kind"].words == (
        "Final accuracy by how often the clients of a class answer, "
        "10\u00a0%/50\u00a0%/90\u00a0%: a 0.300/0.600/-."
    )


def test_one_seed_has_no_spread_to_explain():
    for chart in (accuracy_per_label, lambda groups: accuracy_per_class(groups, (0.1, 0.9))):
        one = SchemeResults([0], np.ones((1, 2)), np.ones((1, 2)))
        assert "standard deviation" not in chart({"kind": {"a": one}}).caption
        assert "standard deviation" in chart({"kind": {"a": scheme()}}).caption


def test_one_class_alone_and_runs_without_classes_have_no_panel():
    assert not accuracy_per_class({"kind": {"a": scheme([[0.2], [0.3]])}}, (0.5,)).panels
    assert not accuracy_per_class({"kind": {"a": scheme()}}, (0.1, 0.9)).panels


def labelled(by_label):
    ones = np.ones((2, 2))
    return SchemeResults([0, 1], asked=4 * ones, successes=ones, label_accuracy=np.array(by_label))


def test_every_scheme_has_a_dot_per_label():
    schemes = {"a": labelled([[0.2, 0.6], [0.4, 0.6]]), "b": scheme()}
    chart = accuracy_per_label({"kind": schemes})
    (dots,) = chart.panels["kind"].series
    assert (dots.name, dots.labels) == ("a", ["0", "1"])
    np.testing.assert_allclose(dots.y, [0.3, 0.6])
    assert chart.panels["kind"].words == "Final accuracy by label, 0/1: a 0.300/0.600."


@pytest.mark.parametrize(("count", "has_panel"), [(1, False), (40, True), (41, False)])
def test_one_label_and_more_than_can_be_told_apart_have_no_panel(count, has_panel):
    chart = accuracy_per_label({"kind": {"a": labelled(np.full((2, count), 0.5))}})
    assert bool(chart.panels) == has_panel
    assert not accuracy_per_label({"kind": {"a": scheme()}}).panels
