"""What a case of several comparisons says, and the smallest effect of several comparisons."""

from dataclasses import replace
from math import inf, sqrt

import pytest
import recompute_claims
from made_evidence import sure_check, trained_evidence

from fedcohort.paper.claims.claim import NOT_REACHED, NOT_RUN, UNKNOWN, Check, decide
from fedcohort.paper.claims.verdicts import CLAIMS, judge
from fedcohort.statistics import Noise

(IN_PAIRS,) = [claim for claim in CLAIMS if claim.name == "E3CS-inc has both"]
HOLDS = sure_check(1.0)
FAILS = sure_check(-1.0)
OPEN = sure_check(0.0)
UNREACHED = sure_check(None, was_run=True)
ABSENT = sure_check(None)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [  # one comparison after the other is worth less than the one before
        (FAILS, ABSENT, "fails"),
        (ABSENT, UNREACHED, NOT_RUN),
        (ABSENT, OPEN, NOT_RUN),
        (ABSENT, HOLDS, NOT_RUN),
        (UNREACHED, OPEN, NOT_REACHED),
        (UNREACHED, HOLDS, NOT_REACHED),
        (OPEN, HOLDS, UNKNOWN),
    ],
)
def test_a_case_that_was_not_run_as_a_whole_is_not_run_though_a_part_cannot_be_told(
    first, second, verdict
):
    for checks in ((first, second), (second, first)):
        claim = replace(IN_PAIRS, checks=lambda *_, pair=checks: iter(pair))
        assert judge(claim, "cifar10", trained_evidence({}))[0] == verdict


def limit_of_two_degrees(level):
    """Return what Student's t of two degrees exceeds, to both sides, with this probability.

    Within +-t lies t / sqrt(2 + t^2); that is 1 - level.
    """
    inside = 1 - level
    return inside * sqrt(2 / (1 - inside**2))


def test_the_smallest_effect_is_that_of_the_first_of_holms_steps():
    # One world with a noise of 4 has the error 2. At 5 % the limit of two degrees is 4.303; at a
    # third of it, 1 / 60, the limit is 59 * sqrt(2 / 119) = 7.649.
    assert limit_of_two_degrees(0.05) == pytest.approx(4.303, abs=0.0005)
    assert limit_of_two_degrees(1 / 60) == pytest.approx(59 * sqrt(2 / 119))
    noise = Noise(4.0, 2)
    one, two, three = [Check("x", {0: mean}, "rounds", noise) for mean in (1.0, 2.0, 3.0)]
    (alone,) = decide([one])
    assert alone.smallest_effect == pytest.approx(2 * 4.303, abs=0.001)
    decisions = decide([one, two, three])
    for decision in decisions:
        assert decision.smallest_effect == pytest.approx(2 * 59 * sqrt(2 / 119))

    # Equal comparisons, and those without a world, are no further ones.
    absent = Check("absent", {}, "rounds", noise)
    first, again, missing = decide([one, one, absent])
    assert first.smallest_effect == again.smallest_effect == alone.smallest_effect
    assert missing.smallest_effect == inf


@pytest.mark.parametrize("comparisons", [1, 3, 7])
@pytest.mark.parametrize("degrees", [2, 4.5, 18])
def test_a_mean_of_the_smallest_effect_is_at_the_limit_of_the_first_step(comparisons, degrees):
    # Simpson's rule of the recomputation, which has no quantile, says how rare such a mean is.
    check = Check("x", {0: 1.0, 1: 3.0, 2: 8.0}, "rounds", Noise(12.0, degrees))
    error = 2.0  # the root of 12 / 3
    t = check.smallest_effect(comparisons) / error
    assert recompute_claims.student(t, degrees) == pytest.approx(0.05 / comparisons, rel=1e-6)
