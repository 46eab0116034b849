from math import log, sqrt

import numpy as np
import pytest

from fedcohort.selection.cs_ucb import CSUCB, CSUCBQ
from fedcohort.selection.protocol import Outcome


def tell(selector, round, clients, seconds, success=None):
    """Play a round in which exactly these clients can be asked."""
    cohort = selector.select(round, clients)
    if success is None:
        success = np.ones(len(clients))
    selector.update(Outcome(cohort, success, seconds=seconds))


def after_three_rounds(scheme, **more):
    """Return a selector of three clients, two per round, whose deadline is 10 seconds.

    Rewards: client 0 gets 0.8 and 0.6; client 1 gets 0.5, then fails after 4 s (the round was
    closed) and gets 0; client 2 gets 0.1 and 0.3.
    """
    selector = scheme(3, 2, deadline=10.0, rng=0, **more)
    tell(selector, 0, [0, 1], [2.0, 5.0])
    tell(selector, 1, [1, 2], [4.0, 9.0], success=[0, 1])
    tell(selector, 2, [0, 2], [4.0, 7.0])
    return selector


def test_scores_of_a_case_worked_by_hand():
    # Means 0.7, 0.25 and 0.2, each of z = 2. Round 3 is t = 4: + sqrt((2 + 1) ln 4 / 2).
    selector = after_three_rounds(CSUCB)
    width = sqrt(3 * log(4) / 2)
    np.testing.assert_allclose(selector.scores(3), np.array([0.7, 0.25, 0.2]) + width, rtol=1e-12)
    assert selector.select(3).clients.tolist() == [0, 1]
    assert selector.select(3, [1, 2]).clients.tolist() == [1, 2]


def test_clients_that_were_never_asked_go_first():
    selector = CSUCB(4, 2, deadline=10.0, rng=0)
    tell(selector, 0, [0, 1], [0.0, 0.0])
    assert selector.select(1).clients.tolist() == [2, 3]


def test_a_client_asked_less_often_has_a_wider_bound():
    # Client 0 was asked 8 times with reward 0.5, client 1 once with 0.4. t = 10:
    # 0.5 + sqrt(2 ln 10 / 8) = 1.26 and 0.4 + sqrt(2 ln 10) = 2.55.
    selector = CSUCB(2, 1, deadline=10.0, rng=0)
    for round in range(8):
        tell(selector, round, [0], [5.0])
    tell(selector, 8, [1], [6.0])
    assert selector.select(9).clients.tolist() == [1]


def test_seconds_beyond_the_deadline_are_worth_nothing():
    selector = CSUCB(2, 1, deadline=10.0, rng=0)
    tell(selector, 0, [0], [12.0])
    assert selector.rewards.tolist() == [0.0, 0.0]


def test_debts_and_scores_of_a_case_worked_by_hand():
    # c = 0.6 * 2/3 = 0.4. Debts: (0, 0, 0.4); then 1 and 2 are asked: (0.4, 0, 0); then 0 and 2:
    # (0, 0.4, 0). t = 4: means + sqrt(2 ln 4 / 2) = + 1.18 are all cut at 1, so with
    # beta = 1/4 the scores are 0.75 + 0.25 D.
    selector = after_three_rounds(CSUCBQ, quota=0.6, fairness=0.25)
    np.testing.assert_allclose(selector.debts, [0, 0.4, 0], rtol=1e-12)
    np.testing.assert_allclose(selector.scores(3), [0.75, 0.85, 0.75], rtol=1e-12)
    assert 1 in selector.select(3).clients


def test_nobody_gets_less_than_the_guaranteed_rate():
    # Client 3 never answers. Of 400 rounds it is asked in c = 0.5 * 2/4 = 1/4 all the same.
    selector = CSUCBQ(4, 2, deadline=10.0, rng=0, quota=0.5, fairness=0.9)
    asked = np.zeros(4)
    for round in range(400):
        cohort = selector.select(round)
        success = cohort.clients != 3
        asked[cohort.clients] += 1
        selector.update(Outcome(cohort, success, seconds=np.where(success, 1.0, 10.0)))
    assert asked.min() >= 100 - 5  # a debt is paid once it outweighs a bound of at most 1


@pytest.mark.parametrize("argument", ["quota", "fairness"])
def test_fractions_out_of_bounds_are_refused(argument):
    with pytest.raises(ValueError, match=rf"{argument} must be between 0.0 and 1.0, got 1.5"):
        CSUCBQ(4, 2, deadline=10.0, rng=0, **{argument: 1.5})
