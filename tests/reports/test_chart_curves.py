import numpy as np

from fedcohort.reports.charts.curves import (
    BAND,
    accuracy_over_rounds,
    effective_participation,
    regret_and_bounds,
    success_ratio,
)
from fedcohort.reports.charts.specification import Line, Marks
from fedcohort.reports.palette import NEUTRAL, scheme_style

NAN = float("nan")
TWO_SEEDS = np.array([[NAN, 0.2, NAN, 0.6], [NAN, 0.4, NAN, 0.8]])


def test_accuracy_skips_the_rounds_that_were_not_tested():
    chart = accuracy_over_rounds({"iid": {"random": TWO_SEEDS}})
    (line,) = chart.panels["iid"].series
    assert line.x.tolist() == [2, 4]
    np.testing.assert_allclose(line.y, [0.3, 0.7])


def test_published_points_stand_beside_the_line_of_their_scheme():
    published = {"iid": {"random": [(2, 0.25)], "fedcs": [(2, 0.3)]}}
    chart = accuracy_over_rounds({"iid": {"random": TWO_SEEDS}}, published=published)
    line, marks = chart.panels["iid"].series
    assert isinstance(line, Line)
    assert isinstance(marks, Marks)
    assert marks.points == [(2, 0.25)]
    assert marks.style == line.style == scheme_style("random")


def test_the_words_name_the_highest_curve_first():
    curves = {"low": np.array([[0.1, 0.2]]), "high": np.array([[0.1, 0.9]])}
    words = success_ratio({"kind": curves}).panels["kind"].words
    assert words == "At the end, success ratio: high 0.9, low 0.2."


def test_bands_are_explained_if_there_are_any():
    several = effective_participation({"kind": {"random": TWO_SEEDS}})
    single = effective_participation({"kind": {"random": TWO_SEEDS[:1]}})
    assert BAND in several.caption
    assert BAND not in single.caption


def test_what_was_not_recorded_has_no_panel():
    assert not accuracy_over_rounds({"kind": {"random": np.full((2, 3), NAN)}}).panels
    assert not accuracy_over_rounds({}).panels


def test_bounds_are_neutral_lines_without_a_band_that_begin_in_round_one():
    chart = regret_and_bounds({"case": {"exact": TWO_SEEDS[:, 1:2]}}, {"case": {"b": np.ones(3)}})
    regret, bound = chart.panels["case"].series
    assert regret.sd is not None
    assert bound.sd is None
    assert bound.style.colour == NEUTRAL
    assert bound.x.tolist() == [1, 2, 3]
