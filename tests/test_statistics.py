from math import isnan, log, nan, sqrt

import numpy as np
import pytest
from scipy import stats

from fedcohort.statistics import Estimate, agree, estimate, p_pooled, pooled_variance, sd
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
    assert pooled_variance([values]) == (0.0, len(values) - 1)
    assert p_pooled([values, [0.7] * 3]) == [1.0, 1.0]


@pytest.mark.parametrize("values", [[1.0, 1.0001], [0.0, 1e-300], [1.0, np.inf], [1.0, nan]])
def test_values_that_differ_do_not_agree(values):
    assert not agree(values)


def test_pooled_p_values_by_hand():
    stats = pytest.importorskip("scipy.stats")
    # Squares 2 and 6 around the means 2 and 5, with 2 + 2 degrees of freedom: variance 2.
    groups = [[1.0, 2.0, 3.0], [4.0, 7.0, 4.0]]
    expected = [2 * stats.t.sf(mean / sqrt(2 / 3), 4) for mean in (2.0, 5.0)]
    assert p_pooled(groups) == pytest.approx(expected)


def test_pooled_p_values_of_one_group_are_those_of_the_paired_test():
    values = [0.3, -0.1, 0.4, 0.2]
    assert p_pooled([values]) == pytest.approx([stats.ttest_1samp(values, 0).pvalue])


def test_without_spread_nothing_is_decided():
    assert p_pooled([]) == []
    assert p_pooled([[1.0], []]) == [1.0, 1.0]
    assert p_pooled([[2.0, 2.0], [1.0, 3.0]])[0] < 1.0


@pytest.mark.parametrize("degrees", [1, 2, 3, 26, 200, 1000, 1001, 10**6])
@pytest.mark.parametrize("tail", [0.5, 0.05, 0.025, 1e-6])
def test_the_limit_of_students_t_is_scipys(degrees, tail):
    assert t_limit(tail, degrees) == pytest.approx(stats.t.isf(tail, degrees), rel=1e-6, abs=1e-9)


def test_the_pooled_variance_of_groups_of_unequal_size():
    # Squares about the means: 2 with one degree of freedom, and 2 with two.
    assert pooled_variance([[1.0, 3.0], [4.0, 5.0, 6.0], [9.0], []]) == (4.0 / 3, 3)
    assert pooled_variance([]) == (0.0, 0)
