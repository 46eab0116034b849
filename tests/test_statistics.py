from math import inf, isnan, log, nan, sqrt

import numpy as np
import pytest
from scipy import stats

from fedcohort.statistics import (
    Estimate,
    Noise,
    agree,
    estimate,
    pool_noise,
    sd,
    two_way_residuals,
)
from fedcohort.students_t import t_limit, t_tail


def test_an_estimate_is_the_mean_and_its_standard_error():
    # mean 2, deviations -1, 0, 1: variance 2 / 2 = 1, standard error 1 / sqrt(3)
    assert estimate([1.0, 2.0, 3.0]) == Estimate(2.0, pytest.approx(1 / sqrt(3)), 3)


def test_one_value_has_a_mean_and_no_error_and_none_has_neither():
    single = estimate([4.0])
    assert (single.mean, single.runs) == (4.0, 1)
    assert isnan(single.error)
    empty = estimate([])
    assert isnan(empty.mean)
    assert isnan(empty.error)
    assert empty.runs == 0


def test_the_standard_deviation_divides_by_one_less_than_the_number_of_values():
    assert sd(np.array([1.0, 3.0])) == pytest.approx(sqrt(2))
    assert isnan(sd(np.array([1.0])))
    assert isnan(sd(np.array([])))


def test_a_logarithm_is_written_as_a_ratio_with_its_error():
    assert Estimate(log(2.0), 0.1, 3).as_ratio() == "2.00× ± 0.20"
    assert Estimate(log(2.0), nan, 1).as_ratio() == "2.00×"
    assert Estimate(nan, nan, 0).as_ratio() == "-"


def test_the_tail_of_students_t_is_that_of_scipy_without_scipy():
    stats = pytest.importorskip("scipy.stats")
    for degrees in (1, 2, 3, 4, 9, 30):
        for ratio in (-3.0, -0.5, 0.0, 0.7, 2.0, 12.0):
            expected = stats.t.sf(ratio, degrees)
            assert t_tail(ratio, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_the_tail_of_students_t_is_never_negative():
    """The sum of a cosine's powers is 1 but for rounding where the tail is below 1e-16."""
    assert t_tail(1000.0, 30) == 0.0


@pytest.mark.parametrize("values", [[0.1, 0.1, 0.1], [0.3 - 0.2, 0.4 - 0.3], [0.0, 0.0]])
def test_differences_that_agree_but_for_rounding_have_no_spread(values):
    """The mean of three times 0.1 is not 0.1, so their deviation is not quite 0."""
    assert agree(values)
    assert estimate(values).error == 0.0
    layout = {"a": dict(enumerate(values)), "b": dict.fromkeys(range(3), 0.7)}
    assert pool_noise([layout]) == Noise(0.0, len(values) - 1)


@pytest.mark.parametrize("values", [[1.0, 1.0001], [0.0, 1e-300], [1.0, np.inf], [1.0, nan]])
def test_values_that_differ_do_not_agree(values):
    assert not agree(values)


def test_fewer_than_two_values_agree():
    assert agree([])
    assert agree([1.0])


@pytest.mark.parametrize("degrees", [1, 2, 3, 26, 200, 1000, 1001, 10**6])
@pytest.mark.parametrize("tail", [0.5, 0.05, 0.025, 1e-6])
def test_the_limit_of_students_t_is_scipys(degrees, tail):
    assert t_limit(tail, degrees) == pytest.approx(stats.t.isf(tail, degrees), rel=1e-6, abs=1e-9)


def test_the_residuals_of_a_table_that_lacks_a_value_by_hand():
    # Rows and columns are fitted to three of four values exactly: nothing is left.
    residuals, degrees = two_way_residuals(np.array([[1.0, 2.0], [3.0, nan]]))
    assert degrees == 0
    assert residuals == pytest.approx(np.array([[0.0, 0.0], [0.0, nan]]), abs=1e-14, nan_ok=True)
    # The last column holds one value, which its own effect fits; the others are a full table with
    # the residuals +-0.5.
    residuals, degrees = two_way_residuals(np.array([[1.0, 2.0, 7.0], [3.0, 6.0, nan]]))
    expected = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, nan]])
    assert degrees == 1
    assert residuals == pytest.approx(expected, abs=1e-14, nan_ok=True)


def test_values_that_are_not_finite_do_not_count():
    with_infinite = two_way_residuals(np.array([[1.0, 2.0, 7.0], [3.0, 6.0, inf]]))
    without = two_way_residuals(np.array([[1.0, 2.0, 7.0], [3.0, 6.0, nan]]))
    assert np.array_equal(with_infinite[0], without[0], equal_nan=True)
    assert with_infinite[1] == without[1]
    assert two_way_residuals(np.array([[nan, inf]]))[1] == 0


def test_a_layout_without_values_has_no_noise():
    assert pool_noise([]).degrees == 0
    assert pool_noise([{}, {"a": {}}]).degrees == 0


def test_noise_has_the_degrees_of_freedom_that_it_claims():
    """20,000 layouts of 4 schemes and 3 seeds: the variance has mean 1 and variance 2 / 6."""
    rng = np.random.default_rng(8)
    variances = []
    for table in rng.normal(size=(20_000, 4, 3)) + rng.normal(size=(20_000, 1, 3)):
        residuals, degrees = two_way_residuals(table)
        assert degrees == 6
        variances.append((residuals**2).sum() / degrees)
    # A chi-square of 6 degrees divided by 6 has the variance 1 / 3 and the kurtosis 3 + 12 / 6.
    assert abs(np.mean(variances) - 1) <= 4 * sqrt(1 / 3 / 20_000)
    assert abs(np.var(variances) - 1 / 3) <= 4 / 3 * sqrt((5 - 1) / 20_000)


def test_the_noise_of_a_sum_has_satterthwaites_degrees():
    # Variances 2 and 6: degrees 64 / (4 / 3 + 36 / 6) = 96 / 11.
    noise = Noise(2.0, 3) + Noise(6.0, 6)
    assert (noise.variance, noise.degrees) == pytest.approx((8.0, 96 / 11))
