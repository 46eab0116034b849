"""The noise of unequal groups of runs, worked by hand, and what a bound tells with a lead."""

from math import inf, log

import pytest
from made_evidence import trained_evidence

from fedcohort.paper.claims import training_checks
from fedcohort.paper.claims.claim import decide
from fedcohort.paper.claims.first_rounds import FirstRounds, compare_rounds
from fedcohort.paper.claims.group import Group
from fedcohort.paper.claims.noise import estimate_noise
from fedcohort.statistics import Noise

IID = Group("cifar10", "iid", 0.0)
GROUPS = 2 * 2 * 3  # partitions, updates and cohort sizes that the noise is pooled over


def by_world(*values):
    return dict(enumerate(values))


def test_the_share_of_the_others_is_weighted_by_the_degrees_of_each_group():
    # First group: b less a is 2, 4, 0, so +-1 in two worlds is left of each: squares 4, with
    # (2 - 1) * (3 - 1) degrees. The others' means are 2, 4, 3; FedCS leads by 1, 2, 6, about
    # their mean 3: squares 4 + 1 + 9, two degrees.
    first = {
        "a": by_world(1.0, 2.0, 3.0),
        "b": by_world(3.0, 6.0, 3.0),
        "fedcs": by_world(3.0, 6.0, 9.0),
    }
    # Second group: one other scheme, which FedCS leads by 2 and 6: squares 4 + 4, one degree.
    second = {"a": by_world(0.0, 5.0), "fedcs": by_world(2.0, 11.0)}
    noise = estimate_noise([first, second])
    assert noise.others == Noise(2.0, 2)
    assert noise.apart == Noise(pytest.approx((14 + 8) / 3), 3)
    # Two degrees hold half of the others' noise, one degree holds all of it.
    assert noise.share == pytest.approx((2 / 2 + 1 / 1) / 3)
    difference = noise.of_difference("fedcs", "a")
    assert difference.variance == pytest.approx(22 / 3 + 2 * (1 - 2 / 3))
    assert estimate_noise([second, first]).share == noise.share


@pytest.mark.parametrize(
    ("zero", "inc", "degrees"),
    [  # of 100 rounds: E3CS-inc turns after round 25
        (by_world(16, 25), by_world(16, 16), 0),  # one scheme, though its runs differ
        (by_world(16, 25), by_world(16, 26), GROUPS),
        (by_world(16, 26), by_world(16, 25), GROUPS),
        (by_world(16, 32), by_world(16, 64), GROUPS),  # two schemes and two worlds: one degree
    ],
)
def test_e3cs_inc_has_a_noise_of_its_own_after_a_quarter_of_the_rounds(zero, inc, degrees):
    evidence = trained_evidence({"e3cs-0": zero, "e3cs-inc": inc})
    noise = training_checks.noise_of(evidence, "cifar10", 0.45).others
    assert noise.degrees == degrees


def test_the_noise_of_rounds_is_that_of_their_logs_and_of_accuracies_that_of_themselves():
    # In logs to the base 2 the rows are 4, 5 and 4, 6: they differ by 0 and 1, so +-1 / 4 is left
    # four times.
    rounds = trained_evidence({"e3cs-0": by_world(16, 32), "e3cs-inc": by_world(16, 64)})
    noise = training_checks.noise_of(rounds, "cifar10", 0.45).others
    assert noise.variance == pytest.approx(4 * (log(2) / 4) ** 2)
    # These differ by 0 and 0.2: +-0.05 is left. An accuracy is no round before the turn.
    finals = trained_evidence({"e3cs-0": by_world(0.5, 0.5), "e3cs-inc": by_world(0.5, 0.7)})
    noise = training_checks.noise_of(finals, "cifar10", "final").others
    assert noise == Noise(pytest.approx(4 * 0.05**2), GROUPS)


@pytest.mark.parametrize(
    ("rounds", "supports"),
    [
        (150, {0: log(150 / 100 / 2)}),  # half of 150 is before 100, where the fast one stopped
        (199, {0: log(199 / 100 / 2)}),
        (250, {}),  # half of 250 lies beyond 100: it may have been twice as fast
    ],
)
def test_a_fast_scheme_that_stopped_short_must_have_been_ahead_by_the_lead(rounds, supports):
    slow = FirstRounds({0: log(rounds)}, {})
    fast = FirstRounds({}, {0: log(100)})
    check = compare_rounds("x", slow, fast, lead=log(2))
    assert check.supports == pytest.approx(supports)
    assert check.by_signs == bool(supports)
    assert check.was_run


def test_a_scheme_that_never_gets_there_is_not_twice_as_fast_as_one_that_does():
    # All runs have 100 rounds, and Random needs 60 in six worlds: E3CS-0, which needs 101 or
    # more, does not need 30 or less. Six of six signs have a p-value of 2 / 64.
    never = dict.fromkeys(range(6), inf)
    evidence = trained_evidence({"e3cs-0": never, "random": dict.fromkeys(range(6), 60)})
    check = training_checks.faster(evidence, IID, "e3cs-0", "random", factor=2)
    assert check.supports == pytest.approx(dict.fromkeys(range(6), log(60 / 101 / 2)))
    (decision,) = decide([check])
    assert (decision.verdict, decision.p_value) == ("fails", 2 / 64)
