"""Sums of noises and corrected p-values, worked by hand."""

import numpy as np
import pytest

from fedcohort.statistics import UNKNOWN_NOISE, Noise, holm


def test_two_noises_of_nothing_have_the_fewer_degrees():
    # Satterthwaite's formula is 0 / 0 here, so that the more careful number stands.
    assert Noise(0.0, 3) + Noise(0.0, 7) == Noise(0.0, 3)
    assert Noise(0.0, 7) + Noise(0.0, 3) == Noise(0.0, 3)


def test_a_noise_of_nothing_adds_nothing_to_another():
    # Degrees: 2^2 / (0 / 3 + 2^2 / 5) = 5.
    assert Noise(0.0, 3) + Noise(2.0, 5) == Noise(2.0, pytest.approx(5))


@pytest.mark.parametrize("known", [Noise(0.0, 4), Noise(2.0, 4)])
def test_a_sum_with_an_unknown_noise_is_unknown(known):
    # Compared by identity, because nan is not equal to itself.
    assert known + UNKNOWN_NOISE is UNKNOWN_NOISE
    assert UNKNOWN_NOISE + known is UNKNOWN_NOISE


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        # In order 0.02, 0.021, 0.9, times 3, 2, 1: 0.06, 0.042, 0.9. The second must not be
        # below the first.
        ([0.02, 0.9, 0.021], [0.06, 0.9, 0.06]),
        # 0.01 * 3 and 0.5 * 2; the last, 0.6, must not be below the second.
        ([0.6, 0.5, 0.01], [1.0, 1.0, 0.03]),
        ([0.7, 0.8], [1.0, 1.0]),  # 1.4 is no probability
        ([0.01, 0.02, 0.03], [0.03, 0.04, 0.04]),  # 0.03, 0.04, 0.03
        ([], []),
    ],
)
def test_a_corrected_p_value_is_never_below_that_of_a_smaller_one(p_values, corrected):
    assert holm(np.array(p_values, dtype=float)) == pytest.approx(np.array(corrected))
