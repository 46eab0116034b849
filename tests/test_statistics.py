from math import isnan, log, nan, sqrt

import numpy as np
import pytest

from fedcohort.statistics import T95, Estimate, estimate, sd, t95


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


def test_the_margin_is_t_times_the_error():
    assert Estimate(0.0, 0.5, 3).margin(noise=9.0) == pytest.approx(2.920 * 0.5)


@pytest.mark.parametrize("error", [nan, 0.0])
def test_without_spread_the_margin_is_the_noise(error):
    assert Estimate(0.0, error, 1).margin(noise=0.3) == 0.3


def test_quantiles_beyond_the_table_continue_it():
    # Student's t at 16, 30 and 100 degrees of freedom, and the normal distribution's at infinity
    for degrees, quantile in ((16, 1.746), (30, 1.697), (100, 1.660), (10**9, 1.645)):
        assert t95(degrees) == pytest.approx(quantile, abs=0.001)
    assert t95(len(T95) + 1) < T95[-1]


def test_a_logarithm_is_written_as_a_ratio_with_its_error():
    assert Estimate(log(2.0), 0.1, 3).as_ratio() == "2.00× ± 0.20"
    assert Estimate(log(2.0), nan, 1).as_ratio() == "2.00×"
    assert Estimate(nan, nan, 0).as_ratio() == "-"
