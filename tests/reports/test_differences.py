"""How far schemes are apart: by hand, and how often chance alone tells equal ones apart."""

from math import isnan

import numpy as np
import pytest
from scipy import stats

from fedcohort.reports.candidates import LEVEL, differences_from_first, differences_to

REPEATS = 1000
# One claim in twenty, and three standard errors.
MOST_CLAIMS = 0.05 + 3 * (0.05 * 0.95 / REPEATS) ** 0.5

# Less the means of rows and columns: a 1, -1, 0, b -1, 0, 1 and c 0, 1, -1. The squares are 6 with
# four degrees of freedom, so the error of a difference over three seeds is sqrt(2 * 1.5 / 3) = 1.
LATIN = {
    "a": {0: 11.0, 1: 9.0, 2: 10.0},
    "b": {0: 6.0, 1: 7.0, 2: 8.0},
    "c": {0: 5.0, 1: 6.0, 2: 4.0},
}


def equal_schemes(count=13, seeds=3, repeats=REPEATS, seed=0):
    """Yield layouts of equal schemes whose seeds move all of them."""
    rng = np.random.default_rng(seed)
    tables = 0.01 * rng.normal(size=(repeats, count, seeds))
    tables += 0.02 * rng.normal(size=(repeats, 1, seeds))
    for table in tables.tolist():
        yield {f"s{row}": dict(enumerate(values)) for row, values in enumerate(table)}


def highest(layout):
    return max(layout, key=lambda name: np.mean(list(layout[name].values())))


def test_differences_to_a_scheme_are_corrected_for_their_number():
    # The means are 10, 7 and 5: 2 and 5 errors above c, and Holm doubles the smaller p-value.
    found = differences_to("c", LATIN)
    two_sided = [2 * stats.t.sf(ratio, 4) for ratio in (2.0, 5.0)]
    assert found["b"].p_value == pytest.approx(two_sided[0])
    assert found["a"].p_value == pytest.approx(2 * two_sided[1])
    assert (found["a"].mean, found["a"].margin) == pytest.approx((5.0, stats.t.ppf(0.975, 4)))


def test_differences_from_the_highest_are_corrected_for_all_pairs():
    # a is 3 errors above b and 5 above c, and b is 2 above c: 3 of the smallest, then 2, then 1.
    found = differences_from_first("a", LATIN)
    two_sided = [2 * stats.t.sf(ratio, 4) for ratio in (3.0, 5.0)]
    assert list(found) == ["b", "c"]
    assert found["b"].p_value == pytest.approx(2 * two_sided[0])
    assert found["c"].p_value == pytest.approx(3 * two_sided[1])
    assert found["c"].mean == pytest.approx(5.0)


def test_the_difference_of_two_schemes_is_that_of_the_paired_test():
    one = [0.3, 0.1, 0.4, 0.2]
    other = [0.1, 0.2, 0.1, 0.0]
    layout = {"one": dict(enumerate(one)), "other": dict(enumerate(other))}
    expected = stats.ttest_rel(one, other).pvalue
    assert differences_to("other", layout)["one"].p_value == pytest.approx(expected)
    assert differences_from_first("one", layout)["other"].p_value == pytest.approx(expected)


def test_a_scheme_that_lacks_seeds_is_compared_over_those_that_it_has():
    # b has a seed of its own, which tells nothing: its effect is that of the seed. The others are
    # the layout above, but the difference to d rests on one seed.
    layout = {**LATIN, "b": {**LATIN["b"], 3: 99.0}, "d": {2: 1.0}}
    found = differences_to("c", layout)
    assert (found["b"].seeds, found["d"].seeds) == (3, 1)
    assert found["b"].margin == pytest.approx(stats.t.ppf(0.975, 4))
    assert found["d"].mean == pytest.approx(-3.0)
    assert found["d"].margin == pytest.approx(stats.t.ppf(0.975, 4) * 3**0.5)


def test_schemes_without_a_common_seed_are_not_told_apart():
    found = differences_to("a", {**LATIN, "d": {7: 1.0}})["d"]
    assert isnan(found.mean)
    assert (found.p_value, found.seeds) == (1.0, 0)


@pytest.mark.parametrize(
    "layout",
    [
        {"a": {0: 0.3, 1: 0.4, 2: 0.1}, "b": {0: 0.2, 1: 0.3, 2: 0.0}},  # 0.1 but for rounding
        {"a": {0: 0.9}, "b": {0: 0.1}},
    ],
)
def test_without_spread_nothing_is_decided(layout):
    for found in (differences_to("b", layout)["a"], differences_from_first("a", layout)["b"]):
        assert found.mean > 0
        assert isnan(found.margin)
        assert found.p_value == 1.0


def test_equal_schemes_are_seldom_told_from_the_highest():
    """13 schemes and 3 seeds: in at most 5 % of layouts any is, within 3 standard errors."""
    told = 0
    for layout in equal_schemes():
        found = differences_from_first(highest(layout), layout).values()
        told += any(difference.p_value < LEVEL for difference in found)
    assert told / REPEATS <= MOST_CLAIMS
    assert told > 0


def test_equal_schemes_are_seldom_told_from_uniform_selection_and_intervals_cover_zero():
    """13 schemes and 3 seeds: 5 % of layouts and 95 % of intervals, within 3 standard errors."""
    told = 0
    covered = []
    for layout in equal_schemes(seed=1):
        found = list(differences_to("s0", layout).values())
        told += any(difference.p_value < LEVEL for difference in found)
        covered.append(np.mean([difference.holds_zero for difference in found]))
    assert told / REPEATS <= MOST_CLAIMS
    error = np.std(covered) / REPEATS**0.5  # over layouts, whose intervals share a reference
    assert abs(np.mean(covered) - 0.95) <= 3 * error


def test_equal_schemes_that_lack_seeds_are_seldom_told_from_the_highest():
    told = 0
    for layout in equal_schemes(count=8, seeds=4, seed=2):
        del layout["s0"][0], layout["s0"][1], layout["s1"][1], layout["s2"][3]
        found = differences_from_first(highest(layout), layout).values()
        told += any(difference.p_value < LEVEL for difference in found)
    assert told / REPEATS <= MOST_CLAIMS
    assert told > 0
