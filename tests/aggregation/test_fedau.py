"""FedAU: intervals between updates, by hand and in the limit."""

import numpy as np
import pytest

from fedcohort.aggregation.base import Setting
from fedcohort.aggregation.fedau import FedAU


def weight(rule, arrivals, client):
    return float(rule.weigh(arrivals([client]))[0, 0])


def test_intervals_by_hand(arrivals):
    # Client 0 arrives in rounds 0, 3 and 4: intervals 1, 3, 1, so its weights are 1, 2 and 5/3.
    rule = FedAU(Setting(1, 2))
    seen = []
    for round in range(5):
        if round in (0, 3, 4):
            seen.append(weight(rule, arrivals, 0))
            rule.learn(arrivals([0], [1]))
        else:
            rule.learn(arrivals([0, 1], [0, 0]))
    assert seen == pytest.approx([1.0, 2.0, 5 / 3])


def test_the_interval_that_ends_now_counts_at_once_unlike_in_the_authors_code(arrivals):
    # The first update comes in the tenth round and counts 10; the authors' code gives it 1. The
    # second comes one round later: (10 + 1) / 2, where the authors' code gives 10.
    rule = FedAU(Setting(1, 1))
    for _ in range(9):
        rule.learn(arrivals([0], [0]))
    assert weight(rule, arrivals, 0) == pytest.approx(10.0)
    rule.learn(arrivals([0], [1]))
    assert weight(rule, arrivals, 0) == pytest.approx(5.5)


def test_a_long_absence_is_cut(arrivals):
    rule = FedAU(Setting(1, 1))
    for _ in range(50):  # as published
        rule.learn(arrivals([0], [0]))
    # One complete interval of 50, then one of a single round: (50 + 1) / 2.
    assert weight(rule, arrivals, 0) == pytest.approx((50 + 1) / 2)


def test_weights_approach_the_inverse_of_how_often_a_client_takes_part(arrivals):
    """4,000 rounds at rate q: the mean of n geometric intervals is 1/q within 5 errors."""
    rng = np.random.default_rng(0)
    rates = np.array([0.2, 0.5, 1.0])
    rule = FedAU(Setting(1, 3))
    for _ in range(4000):
        rule.learn(arrivals([0, 1, 2], rng.random(3) < rates))
    averages = (rule.total / rule.intervals)[0]
    error = np.sqrt(1 - rates) / rates / np.sqrt(rule.intervals[0])
    assert (np.abs(averages - 1 / rates) <= 5 * error).all()
