"""Clients that were asked, but not waited for: neither a success nor a failure."""

import numpy as np
import pytest

from fedcohort import E3CS, Federation, Outcome, make_selector, play
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Cohort
from fedcohort.selection.random import Random

FOUR = Cohort(0, [0, 1, 2, 3], [1.0, 1.0, 1.0, 1.0])
CENSORED = np.array([False, False, True, True])


def told(name, censored, success=(1, 0, 0, 0), seconds=(2.0, 5.0, 3.0, 3.0)):
    """A selector of eight clients that asked four, and what it learnt of them."""
    federation = Federation(8, 4, rng=0, horizon=9, data_sizes=np.ones(8), deadline=10.0)
    selector = make_selector(name, federation)
    cohort = selector.select(0)
    loss = np.where(np.array(success) > 0, 1.0, np.nan)
    outcome = Outcome(cohort, np.array(success), loss, np.array(seconds), loss, censored)
    selector.update(outcome)
    return selector, cohort.clients


def test_the_robust_update_charges_failures_and_not_those_who_were_not_waited_for():
    censored, clients = told("e3cs-robust", CENSORED)
    charged, _ = told("e3cs-robust", None)
    succeeded, failed, *unknown = clients
    outsider = np.setdiff1d(np.arange(8), clients)[0]
    weights = censored.log_weights
    assert weights[failed] < weights[succeeded]
    assert weights[unknown[0]] == weights[unknown[1]] == weights[succeeded] == weights[outsider]
    assert charged.log_weights[unknown[0]] < charged.log_weights[succeeded]


def test_the_papers_update_adds_a_gain_to_those_who_answered_alone():
    censored, clients = told("e3cs-0", CENSORED)
    as_failures, _ = told("e3cs-0", None)
    np.testing.assert_array_equal(censored.log_weights, as_failures.log_weights)
    assert np.flatnonzero(censored.log_weights).tolist() == [clients[0]]


def test_bounds_on_times_count_only_those_who_were_waited_for():
    selector, clients = told("cs-ucb", CENSORED)
    assert selector.asks[clients].tolist() == [1, 1, 0, 0]
    assert selector.rewards[clients].tolist() == [0.8, 0, 0, 0]

    selector, clients = told("rbcs-f", CENSORED)
    assert selector.asks[clients].tolist() == [1, 1, 0, 0]
    assert selector.times[clients].tolist() == [0.2, 1.0, 0, 0]

    selector, clients = told("refl", CENSORED)
    assert selector.trials[clients].tolist() == [1, 1, 0, 0]
    assert selector.times_there[clients].tolist() == [1, 0, 0, 0]


def test_the_seconds_of_a_client_that_was_not_waited_for_are_a_lower_bound():
    federation = Federation(4, 4, rng=0, data_sizes=np.ones(4))
    selector = make_selector("oort", federation)
    seconds = [[9.0, 9.0, 9.0, 9.0], [2.0, 12.0, 3.0, 11.0]]
    for round, censored in enumerate([np.zeros(4, dtype=bool), CENSORED]):
        cohort = selector.select(round)
        success = (~censored).astype(float)
        loss = np.ones(4)
        outcome = Outcome(cohort, success, loss, np.array(seconds[round]), loss, censored)
        selector.update(outcome)
    assert selector.seconds.tolist() == [2.0, 12.0, 9.0, 11.0]


def test_a_censored_client_cannot_have_succeeded():
    with pytest.raises(ValueError, match=r"success must be 0 where censored, got 1\.0"):
        Outcome(FOUR, [1, 0, 1, 0], censored=CENSORED)
    with pytest.raises(ValueError, match=r"censored must be bool of shape \(4,\), got int64"):
        Outcome(FOUR, [1, 0, 0, 0], censored=[0, 0, 1, 1])
    assert Outcome(FOUR, [1, 0, 0, 0]).observed.all()
    assert Outcome(FOUR, [1, 0, 0, 0], censored=CENSORED).observed.tolist() == [
        True,
        True,
        False,
        False,
    ]


class Recording(Random):
    """Asks all, waits for some, and keeps what it is told."""

    def learn(self, outcome):
        self.outcomes = [*getattr(self, "outcomes", []), outcome]


def recording(enough, runs=None):
    selector = Recording(4, 4, rng=0 if runs is None else list(range(runs)))
    selector.enough = enough
    return selector


def test_the_loop_says_who_was_not_waited_for():
    selector = recording(2)
    rows = [np.array([3.0, np.inf, 1.0, 4.0]), np.array([1.0, 9.0, np.inf, 9.0])]
    list(play(selector, rows, 2, deadline=5.0))
    closed, waited = selector.outcomes
    assert closed.censored.tolist() == [False, True, False, True]
    assert not waited.censored.any(), "at the deadline silence is a failure"


def test_runs_in_lock_step_are_censored_one_by_one():
    early, patient = recording(2, runs=2), recording(None, runs=1)
    row = np.tile([3.0, np.inf, 1.0, 4.0], (3, 1))
    list(play(Lockstep([early, patient], [2, 1]), [row], 1, deadline=5.0))
    assert early.outcomes[0].censored.tolist() == [[False, True, False, True]] * 2
    assert not patient.outcomes[0].censored.any()


def test_without_anybody_censored_all_is_as_before():
    plain = E3CS(8, 4, rng=0, update="robust")
    marked = E3CS(8, 4, rng=0, update="robust")
    for round in range(20):
        success = np.arange(4) % 2
        plain.update(Outcome(plain.select(round), success))
        cohort = marked.select(round)
        marked.update(Outcome(cohort, success, censored=np.zeros(4, dtype=bool)))
    np.testing.assert_array_equal(plain.log_weights, marked.log_weights)
