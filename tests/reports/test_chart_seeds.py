"""Means over seeds, and the points of a curve."""

import numpy as np

from fedcohort.reports.charts.seeds import (
    accuracy_over_seconds,
    curve_over_rounds,
    evenly_spread,
    mean_and_sd,
)
from fedcohort.reports.findings import SchemeResults

NAN = float("nan")


def test_means_are_over_the_seeds_that_have_a_value():
    mean, spread = mean_and_sd(np.array([[0.0, 1.0, NAN], [2.0, NAN, NAN]]))
    np.testing.assert_array_equal(mean, [1.0, 1.0, NAN])
    np.testing.assert_array_equal(spread, [np.sqrt(2), NAN, NAN])


def test_means_without_nan_are_those_of_numpy_to_the_last_bit():
    values = np.random.default_rng(0).random((7, 50))
    mean, spread = mean_and_sd(values)
    np.testing.assert_array_equal(mean, values.mean(axis=0))
    np.testing.assert_array_equal(spread, values.std(axis=0, ddof=1))


def test_a_curve_has_only_the_seeds_that_were_played_furthest():
    values = np.array([[0.0, NAN, 1.0, NAN], [2.0, NAN, 3.0, NAN], [9.0, NAN, NAN, NAN]])
    curve = curve_over_rounds(values)
    assert curve.x.tolist() == [1, 3]
    assert curve.mean.tolist() == [1, 2]
    np.testing.assert_allclose(curve.sd, [2**0.5, 2**0.5])


def test_values_that_were_never_recorded_give_no_points():
    assert all(part.size == 0 for part in curve_over_rounds(np.full((2, 3), NAN)))


def test_few_indices_are_spread_evenly_and_keep_both_ends():
    assert evenly_spread(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert evenly_spread(101, 3).tolist() == [0, 50, 100]


def test_at_each_moment_the_last_accuracy_tested_counts():
    scheme = SchemeResults(
        seeds=[0],
        asked=np.full((1, 3), 4.0),
        successes=np.ones((1, 3)),
        accuracy=np.array([[0.1, NAN, 0.5]]),
        seconds=np.array([[1.0, 1.0, 2.0]]),
    )
    curve = accuracy_over_seconds(scheme)  # tested after 1 s and 4 s
    assert (curve.x[0], curve.x[-1]) == (1, 4)
    assert [y for x, y in zip(curve.x, curve.mean, strict=True) if x < 4] == [0.1, 0.1]
    assert curve.mean[-1] == 0.5


def test_without_seconds_there_is_no_curve_over_time():
    scheme = SchemeResults([0], np.ones((1, 2)), np.ones((1, 2)), accuracy=np.ones((1, 2)))
    assert accuracy_over_seconds(scheme).x.size == 0


def test_a_curve_over_time_ends_when_the_first_seed_has_no_more_rounds():
    scheme = SchemeResults(
        seeds=[0, 1],
        asked=np.full((2, 2), 4.0),
        successes=np.ones((2, 2)),
        accuracy=np.array([[0.1, 0.5], [0.3, 0.7]]),
        seconds=np.array([[1.0, 1.0], [1.0, 9.0]]),
    )
    curve = accuracy_over_seconds(scheme)  # one seed ends after 2 s, the other after 10 s
    assert (curve.x[0], curve.x[-1]) == (1, 2)
    np.testing.assert_allclose(curve.mean[[0, -1]], [0.2, 0.4])


def test_a_curve_over_time_begins_when_every_seed_has_been_tested():
    scheme = SchemeResults(
        seeds=[0, 1],
        asked=np.full((2, 2), 4.0),
        successes=np.ones((2, 2)),
        accuracy=np.array([[0.1, 0.5], [0.3, 0.7]]),
        seconds=np.array([[1.0, 4.0], [3.0, 4.0]]),
    )
    curve = accuracy_over_seconds(scheme)  # tested after 1 s and 5 s, and after 3 s and 7 s
    assert (curve.x[0], curve.x[-1]) == (3, 5)
    np.testing.assert_allclose(curve.mean[[0, -1]], [0.2, 0.4])
