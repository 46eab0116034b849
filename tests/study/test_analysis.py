"""Which differences hold: by hand, and how often chance alone makes one."""

import numpy as np
import pytest

from fedcohort.statistics import Noise
from fedcohort.study.analysis import (
    best_group,
    compare_rules,
    compare_with,
    holm,
    noise_by_rule,
)

NAMES = [(selector, rule) for rule in ("r", "s", "t") for selector in "abcdefg"]


def values_of(table, names=NAMES):
    return {name: list(row) for name, row in zip(names, table, strict=True)}


def test_holm_by_hand():
    # 0.01 * 4; then 0.02 * 3; then max(0.06, 0.03 * 2); then max(0.06, 0.5).
    corrected = holm(np.array([0.5, 0.01, 0.03, 0.02]))
    assert corrected.tolist() == pytest.approx([0.5, 0.04, 0.06, 0.06])


def test_corrected_values_stay_at_most_one():
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_noise_by_hand():
    # Means of rows 1.5 and 4.5, of columns 2 and 4, of all 3: residuals +-0.5, sum of squares 1,
    # one degree of freedom.
    assert noise_by_rule({("a", "r"): [1.0, 2.0], ("b", "r"): [3.0, 6.0]}) == {"r": Noise(1.0, 1.0)}


def test_an_effect_of_the_seed_is_no_noise():
    table = np.arange(21.0)[:, None] + np.array([0.0, 5.0, -3.0])
    for noise in noise_by_rule(values_of(table)).values():
        assert noise.variance == pytest.approx(0.0, abs=1e-20)


def test_a_difference_without_noise_has_no_interval_and_does_not_hold():
    # Both seeds have the same difference of 1: the residuals are zero.
    found = compare_with(("a", "r"), {("a", "r"): [1.0, 2.0], ("b", "s"): [2.0, 3.0]})["b", "s"]
    assert found.mean == 1.0
    assert np.isnan([found.low, found.high, found.p_value]).all()
    assert not found.holds
    assert not found.has_interval


def test_rounding_is_no_noise():
    # In floating point 0.1 + 0.2 - 0.3 is 6e-17, which would make any difference certain.
    values = {("a", "r"): [0.1, 0.2], ("b", "r"): [0.1 + 0.2, 0.2 + 0.2]}
    assert not compare_with(("a", "r"), values)["b", "r"].holds


def test_combinations_with_one_rule_share_one_estimate_of_the_noise():
    # Residuals +-0.5 in all four runs: squares 1 with one degree of freedom. The
    # variance of the difference of two means of two seeds is 2 * 1 / 2 = 1, its mean 3: t is 3
    # with one degree of freedom, not two, and p = 1 - 2 / pi * arctan(3).
    found = compare_with(("a", "r"), {("a", "r"): [1.0, 2.0], ("b", "r"): [3.0, 6.0]})["b", "r"]
    assert found.p_value == pytest.approx(1 - 2 / np.pi * np.arctan(3.0))
    assert found.high - 3.0 == pytest.approx(np.tan(np.pi / 2 * 0.95))


def test_a_large_difference_holds_and_the_best_stands_alone():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(21, 5))
    table[NAMES.index(("c", "s"))] += 10.0
    differences = compare_with(("a", "r"), values_of(table))
    found = differences["c", "s"]
    assert found.holds
    assert found.low > 5.0
    assert best_group(values_of(table)) == [("c", "s")]


def test_chance_alone_makes_a_difference_in_at_most_one_block_of_twenty():
    """600 blocks without any effect, noise that differs by rule: 5 % within 4 errors."""
    rng = np.random.default_rng(1)
    scale = np.repeat([0.5, 1.0, 3.0], 7)[:, None]
    false_alarms = 0
    for _ in range(600):
        table = rng.normal(size=(21, 3)) * scale + rng.normal(size=3)
        differences = compare_with(("a", "r"), values_of(table)).values()
        false_alarms += any(difference.holds for difference in differences)
    error = (0.05 * 0.95 / 600) ** 0.5
    assert false_alarms / 600 <= 0.05 + 4 * error
    assert false_alarms > 0  # the correction is not absurdly strict


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (0.5, 1.0, 3.0)])
def test_chance_leaves_an_equal_one_out_of_the_best_in_at_most_one_block_of_twenty(scales):
    """1,000 blocks of equal combinations: 5 % within 3 errors."""
    rng = np.random.default_rng(5)
    scale = np.repeat(scales, 7)[:, None]
    too_small = 0
    for _ in range(1000):
        table = rng.normal(size=(21, 3)) * scale + rng.normal(size=3)
        too_small += len(best_group(values_of(table))) < 21
    assert too_small / 1000 <= 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
    assert too_small > 0


def test_the_best_of_two_is_compared_by_students_t():
    # The studentised range of two means is Student's t: p of t = 3 and one degree is 0.2.
    values = {("a", "r"): [1.0, 2.0], ("b", "r"): [3.0, 6.0]}
    assert best_group(values) == [("b", "r"), ("a", "r")]
    # The mean difference is 13 now, t = 13 and p = 1 - 2 / pi * arctan(13) = 0.0489.
    values["b", "r"] = [13.0, 16.0]
    assert best_group(values) == [("b", "r")]


def test_the_best_group_is_that_of_the_studentised_range():
    """The limit of three equal means, from a printed table.

    Three combinations and three seeds without an effect of the seed: means 0, 0 and d, and
    residuals (1, -1, 0), (-1, 0, 1), (0, 1, -1), whose sums over rows and columns are zero.
    Their squares are 6 with four degrees of freedom, so the error of a mean is sqrt(1.5 / 3).
    """
    residuals = np.array([[1.0, -1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    names = [("a", "r"), ("b", "r"), ("c", "r")]
    limit = 5.040 * 0.5**0.5  # the table of the studentised range: 5 %, 3 means, 4 degrees
    below, above = residuals.copy(), residuals.copy()
    below[2] += 0.999 * limit
    above[2] += 1.001 * limit
    assert len(best_group(values_of(below, names))) == 3
    assert best_group(values_of(above, names)) == [("c", "r")]


def test_a_best_without_noise_is_told_from_nobody():
    assert len(best_group({("a", "r"): [1.0, 2.0], ("b", "s"): [2.0, 3.0]})) == 2


def test_intervals_cover_the_truth_as_often_as_they_say():
    """Of 1,000 intervals of one comparison 95 % cover zero, within 4 errors."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(1000):
        table = rng.normal(size=(21, 3))
        difference = compare_with(("a", "r"), values_of(table))["b", "s"]
        covered += difference.low <= 0.0 <= difference.high
    assert abs(covered / 1000 - 0.95) <= 4 * (0.95 * 0.05 / 1000) ** 0.5


def test_one_seed_is_refused():
    with pytest.raises(ValueError, match=r"two seeds, got \(2, 1\)"):
        compare_with(("a", "r"), {("a", "r"): [1.0], ("b", "r"): [2.0]})


def test_rules_are_compared_by_their_averages_over_selectors():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(21, 3))
    table[[rule == "t" for _, rule in NAMES]] += 5.0
    differences = compare_rules("r", values_of(table))
    averages = {"r": table[:7].mean(), "t": table[14:].mean()}
    assert differences["t"].mean == pytest.approx(averages["t"] - averages["r"])
    assert differences["t"].holds


def test_averages_over_selectors_have_the_spread_of_their_seeds():
    # Averages over a and b are 2 and 4 with rule r, 3 and 9 with rule s: differences 1 and 5.
    # Their mean is 3 and its standard error 2, so that t is 1.5 with one degree of freedom, where
    # Student's t is Cauchy's: p = 1 - 2 / pi * arctan(1.5).
    values = {
        ("a", "r"): [1.0, 4.0],
        ("b", "r"): [3.0, 4.0],
        ("a", "s"): [2.0, 7.0],
        ("b", "s"): [4.0, 11.0],
    }
    found = compare_rules("r", values)["s"]
    assert found.mean == 3.0
    assert found.p_value == pytest.approx(1 - 2 / np.pi * np.arctan(1.5))


def test_chance_that_the_runs_of_a_seed_share_makes_no_rule_better():
    """600 blocks in which a rule meets good and bad seeds: 5 % within 4 errors."""
    rng = np.random.default_rng(4)
    false_alarms = 0
    for _ in range(600):
        shared = np.repeat(rng.normal(size=(3, 3)), 7, axis=0)  # by rule and seed
        table = shared + 0.1 * rng.normal(size=(21, 3))
        differences = compare_rules("r", values_of(table)).values()
        false_alarms += any(difference.holds for difference in differences)
    error = (0.05 * 0.95 / 600) ** 0.5
    assert false_alarms / 600 <= 0.05 + 4 * error
    assert false_alarms > 0


def test_rules_of_one_seed_have_no_interval():
    found = compare_rules("r", {("a", "r"): [1.0], ("a", "s"): [2.0]})["s"]
    assert found.mean == 1.0
    assert not found.has_interval
