"""Inverse probability weights: by hand, and unbiased by simulation."""

import numpy as np
import pytest

from fedcohort.aggregation.base import Arrivals, Setting
from fedcohort.aggregation.inverse import (
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
