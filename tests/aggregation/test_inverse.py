"""Inverse probability weights: by hand, and unbiased by simulation."""

import numpy as np
import pytest

from fedcohort.aggregation.base import Arrivals, Setting
from fedcohort.aggregation.inverse import (
    LEAST_RATE,
    Inverse,
    InverseEstimated,
    InverseNormalised,
    InverseNormalisedEstimated,
)


def test_true_rates_by_hand(arrivals):
    # share 0.2, asked with probability 0.5, answers half of the time: 0.2 * 2 / 0.5 = 0.8
    # share 0.3, asked for certain, answers one time in four: 0.3 * 1 / 0.25 = 1.2
    rule = Inverse(Setting(1, 3, success_rates=np.array([[0.5, 1.0, 0.25]])))
    known = arrivals([0, 2], shares=[0.2, 0.3], weights=[2.0, 1.0])
    assert rule.weigh(known)[0].tolist() == pytest.approx([0.8, 1.2])


def test_estimates_by_hand(arrivals):
    # client 0: asked twice, arrived once: (1 + 1) / (2 + 2) = 1/2; client 1: (0 + 1) / (1 + 2)
    rule = InverseEstimated(Setting(1, 3))
    rule.learn(arrivals([0, 1], [1, 0]))
    rule.learn(arrivals([0, 2], [0, 1]))
    known = arrivals([0, 1], shares=[1.0, 1.0], weights=[1.0, 1.0])
    assert rule.weigh(known)[0].tolist() == pytest.approx([2.0, 3.0])


@pytest.mark.parametrize("rule", [InverseEstimated, InverseNormalisedEstimated])
def test_estimates_count_the_share_of_rounds_in_which_a_client_is_available(arrivals, rule):
    # Client 0 was there in 1 of 3 rounds, and is now: (1 + 1) / (3 + 1) = 1/2. It was asked once
    # and arrived: (1 + 1) / (1 + 2) = 2/3. Its rate is 1/3. Client 1 was always there and never
    # asked: 1 * 1/2. The third round tells nothing of who is there, so everyone is.
    own = rule(Setting(1, 3))
    own.learn(arrivals([2], [1], available=[0, 1, 1]))
    own.learn(arrivals([2], [1], available=[0, 1, 0]))
    own.learn(arrivals([0], [1]))
    known = arrivals([0, 1], shares=[1.0, 1.0], weights=[1.0, 1.0], available=[1, 1, 0])
    assert own.rounds.tolist() == [[3.0, 3.0, 3.0]]
    assert own.available.tolist() == [[1.0, 3.0, 2.0]]
    assert own.weigh(known)[0].tolist() == pytest.approx([3.0, 2.0])


def test_where_nobody_is_known_to_be_offline_estimates_are_exactly_successes_by_questions(arrivals):
    rng = np.random.default_rng(0)
    rule = InverseEstimated(Setting(1, 4))
    for _ in range(30):
        rule.learn(arrivals([0, 1, 2, 3], rng.random(4) < 0.3))
    known = arrivals([0, 1, 2, 3], shares=rng.random(4), weights=1 / rng.random(4))
    rates = (rule.succeeded + 1) / (rule.asked + 2)
    assert np.array_equal(rule.weigh(known), known.shares * known.weights / rates)


def test_a_client_that_is_never_available_gets_at_most_a_hundredfold_weight(arrivals):
    rule = InverseEstimated(Setting(1, 2))
    for _ in range(1000):
        rule.learn(arrivals([1], [1], available=[0, 1]))
    known = arrivals([0], shares=[1.0], weights=[1.0], available=[1, 1])
    assert rule.weigh(known)[0].tolist() == pytest.approx([2 / LEAST_RATE])


def test_a_client_that_joins_is_not_absent_in_the_rounds_before(arrivals):
    rule = InverseEstimated(Setting(1, 1))
    for _ in range(9):
        rule.learn(arrivals([0], [1], available=[1]))
    rule.join()
    known = arrivals([1], shares=[1.0], weights=[1.0], available=[1, 1])
    assert rule.weigh(known)[0].tolist() == pytest.approx([2.0])


def test_a_state_from_before_availability_was_counted_goes_on_as_if_everyone_was_there(arrivals):
    rule = InverseEstimated(Setting(1, 2))
    old = {"asked": np.array([[4.0, 1.0]]), "succeeded": np.array([[2.0, 1.0]])}
    rule.load_state_dict(old)
    assert rule.rounds.tolist() == rule.available.tolist() == [[0.0, 0.0]]
    assert rule.weigh(arrivals([0, 1]))[0].tolist() == pytest.approx([2.0, 1.5])
    with pytest.raises(ValueError, match=r"available of a rule's state must be numbers"):
        rule.load_state_dict({**old, "rounds": np.ones((1, 2))})


def test_nobody_is_not_counted(arrivals):
    rule = InverseEstimated(Setting(1, 3))
    rule.learn(arrivals([1, -1], [1, 0]))
    assert rule.asked.tolist() == [[0.0, 1.0, 0.0]]


def test_only_the_normalised_rules_divide_by_their_weights():
    rules = (Inverse, InverseEstimated, InverseNormalised, InverseNormalisedEstimated)
    assert [rule.normalises for rule in rules] == [False, False, True, True]


def test_a_client_that_never_answers_gets_a_finite_weight(arrivals):
    rule = Inverse(Setting(1, 1, success_rates=np.array([[0.0]])))
    assert rule.weigh(arrivals([0]))[0].tolist() == pytest.approx([100.0])


def test_without_true_rates_the_rule_is_refused():
    with pytest.raises(ValueError, match="success_rates must be given for Inverse, got None"):
        Inverse(Setting(1, 3))


def test_the_expected_change_is_that_of_everybody():
    """20,000 rounds of 6 clients; 5 standard errors, so a true rule fails once in a million."""
    rng = np.random.default_rng(0)
    rounds = 20_000
    shares = np.array([0.05, 0.1, 0.15, 0.2, 0.2, 0.3])
    updates = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0])
    rates = np.array([0.2, 0.9, 0.5, 0.7, 0.4, 1.0])
    inclusion = 0.5
    clients = np.sort(np.argsort(rng.random((rounds, 6)), axis=1)[:, :3], axis=1)
    valid = rng.random((rounds, 3)) < rates[clients]

    rule = Inverse(Setting(rounds, 6, success_rates=np.broadcast_to(rates, (rounds, 6))))
    unknown = np.full(clients.shape, np.nan)
    weights = np.full(clients.shape, 1 / inclusion)
    known = Arrivals(clients, valid, shares[clients], weights, unknown, unknown)
    changes = (rule.weigh(known) * valid * updates[clients]).sum(axis=1)

    error = changes.std() / np.sqrt(rounds)
    assert abs(changes.mean() - shares @ updates) < 5 * error
    unweighted = (shares[clients] * valid * updates[clients]).sum(axis=1)
    assert abs(unweighted.mean() - shares @ updates) > 5 * error  # the test can fail


def test_estimates_are_unbiased_where_the_server_knows_who_is_offline():
    """100 runs of 2,000 rounds; 5 standard errors over the runs, which are independent.

    One of the clients that are online is asked. The mean weight of a round is 1, but for the
    prior of the estimate, which lifts it by about 1/n after n questions. The rarest client is
    asked in 1 of 13 rounds, so by 0.013 at most in the last 1,000 rounds, which count.
    """
    rng = np.random.default_rng(5)
    num_runs, skipped, rounds = 100, 1000, 2000
    online = np.array([0.2, 0.5, 0.5, 0.9])
    rates = np.array([1.0, 0.8, 0.4, 0.6])
    runs = np.arange(num_runs)
    ones = np.ones((num_runs, 1))
    rule = InverseEstimated(Setting(num_runs, 4))
    total = np.zeros((num_runs, 4))
    for round in range(rounds):
        available = rng.random((num_runs, 4)) < online
        keys = np.where(available, rng.random((num_runs, 4)), -1.0)
        clients = np.where(available.any(axis=1), keys.argmax(axis=1), -1)[:, None]
        valid = (rng.random((num_runs, 1)) < rates[clients]) & (clients >= 0)
        weights = available.sum(axis=1, keepdims=True) * ones
        known = Arrivals(clients, valid, ones, weights, ones, ones, available)
        if round >= skipped:
            total[runs, clients[:, 0]] += (rule.weigh(known) * valid)[:, 0]
        rule.learn(known)

    means = total / (rounds - skipped)
    error = means.std(axis=0) / np.sqrt(num_runs)
    assert (np.abs(means.mean(axis=0) - 1) <= 5 * error + 0.013).all()
    # Estimates that count only the rounds in which a client is asked give these means.
    assert (np.abs(means.mean(axis=0) - online) > 5 * error + 0.013).all()
