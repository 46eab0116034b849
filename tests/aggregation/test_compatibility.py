"""Which rules can weigh the cohorts of which selectors."""

import numpy as np
import pytest

from fedcohort.aggregation.base import Arrivals, Setting
from fedcohort.aggregation.compatibility import check_compatible
from fedcohort.aggregation.registry import AGGREGATIONS, make_rule
from fedcohort.rounds import Returned, play
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.f3ast import F3AST
from fedcohort.selection.over_selection import OverSelection
from fedcohort.selection.registry import SELECTORS, Federation, make_selector
from fedcohort.selection.sampling import SAMPLERS

RANKING = ("pow-d", "rpow-d", "fedcs-time")
BY_INCLUSION = [name for name in AGGREGATIONS if name.startswith("inverse")]
BY_TRUE_RATES = ["inverse", "inverse-normalised"]


def make(name):
    return make_selector(
        name,
        Federation(
            6,
            2,
            rng=0,
            horizon=10,
            success_rates=np.full(6, 0.5),
            loss_of=lambda clients: np.ones(clients.shape),
            data_sizes=np.ones(6),
            deadline=1.0,
        ),
    )


@pytest.mark.parametrize("knows_offline", [False, True])
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_only_pairs_with_wrong_weights_are_refused(rule, selector, knows_offline):
    lacks_inclusion = selector in RANKING and rule in BY_INCLUSION
    cuts_slow_clients = selector == "over-selection" and rule in BY_TRUE_RATES
    counts_absence_twice = selector == "f3ast" and rule in BY_TRUE_RATES and knows_offline
    if lacks_inclusion or cuts_slow_clients or counts_absence_twice:
        with pytest.raises(ValueError, match=f"{selector}.*got '{rule}'"):
            check_compatible(rule, selector, make(selector), knows_offline)
    else:
        check_compatible(rule, selector, make(selector), knows_offline)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("selector", ["e3cs-0", "e3cs-0.5-robust", "random"])
@pytest.mark.parametrize("rule", AGGREGATIONS)
def test_rules_that_divide_by_inclusion_are_refused_with_a_sampler_that_misses_it(
    rule, selector, sampler
):
    made = make_selector(selector, Federation(6, 2, rng=0, sampler=sampler))
    if sampler == "successive" and selector != "random" and rule in BY_INCLUSION:
        message = f"selector '{selector}', whose sampler misses them, got '{rule}'; use the sampler"
        with pytest.raises(ValueError, match=message):
            check_compatible(rule, selector, made)
    else:
        check_compatible(rule, selector, made)


def test_the_successive_sampler_biases_weights_by_inclusion_and_an_exact_one_does_not():
    """Two of four clients with the weights 9, 1, 1, 1 are asked, in 4,000 runs.

    Their probabilities are 1, 1/3, 1/3, 1/3. The successive sampler draws client 0 first with
    probability 1/2, and otherwise second with 1 / (1 + 2/3) = 3/5: together 4/5. The others share
    6/5, so they are drawn with 2/5 each. The mean factors of their shares, asked / p, are 4/5 and
    6/5 instead of 1. Five standard errors are below 0.032 and 0.12.
    """
    means = {}
    for sampler in ("successive", "systematic"):
        selector = E3CS(4, 2, rng=range(4000), sampler=sampler)
        selector.log_weights = np.tile(np.log([9.0, 1.0, 1.0, 1.0]), (4000, 1))
        cohort = selector.select(0)
        total = np.zeros(4)
        np.add.at(total, cohort.clients, cohort.correction)
        means[sampler] = total / 4000
    assert means["systematic"][0] == 1.0
    np.testing.assert_allclose(means["systematic"][1:], 1.0, atol=0.12)
    assert means["successive"][0] == pytest.approx(0.8, abs=0.032)
    np.testing.assert_allclose(means["successive"][1:], 1.2, atol=0.12)


def test_a_selector_that_declares_nothing_is_not_refused():
    check_compatible("inverse", "mine", object())


class AddWeights:
    """A learner that adds up the weights of each of four clients."""

    def __init__(self, rule, rates=(1.0, 1.0, 1.0, 1.0)):
        self.rule = make_rule(rule, Setting(1, 4, np.array([rates])))
        self.total = np.zeros(4)

    def train(self, round, clients, arrived, weights, available=None):
        ones = np.ones((1, clients.size))
        present = None if available is None else available[None]
        known = Arrivals(clients[None], arrived[None], ones, weights[None], ones, ones, present)
        self.total[clients] += (self.rule.weigh(known)[0]) * arrived
        self.rule.learn(known)
        return Returned(arrived)


def test_true_rates_are_biased_where_rounds_close_early_and_estimates_are_not():
    """2 of 4 clients are asked, and the quicker one is waited for; 4,000 rounds.

    Client i answers after i + 1 seconds, always. It is asked with probability 1/2, and then is the
    quicker one with probability (3 - i) / 3, its true chance to count. With a success rate of 1
    its mean weight is that instead of 1: that of client 2 is 1/3. The standard error of its
    estimate is that of 1/3 * 1/2 in 4,000 rounds, divided by 1/6: below 0.036.
    """
    means = []
    for rule in ("inverse", "inverse-estimated"):
        learner = AddWeights(rule)
        selector = OverSelection(4, 1, rng=0, factor=2)
        world = [np.arange(1.0, 5.0)] * 4000
        for _ in play(selector, world, 4000, learner, deadline=10.0):
            pass
        means.append(learner.total / 4000)
    assert means[0][2] == pytest.approx(1 / 3, abs=5 * 0.012)
    assert means[1][2] == pytest.approx(1.0, abs=5 * 0.036)


def test_true_rates_count_absence_twice_with_the_weights_of_f3ast_and_estimates_do_not():
    """1 of 4 clients is asked, and always answers; 0 and 1 are away in every second round.

    All are asked in a quarter of the rounds, so their weights are 4. Dividing by the true rate of
    clients 0 and 1, which is 1/2, makes theirs 8: on average twice what it should be. The rates of
    f3ast lag behind by its memory, 0.01, and the estimates start at 1/2: less than 5 % over 4,000
    rounds.
    """
    online = [np.array([False, False, True, True]), np.ones(4, dtype=bool)] * 2000
    rates = (0.5, 0.5, 1.0, 1.0)
    means = []
    for rule in ("inverse", "inverse-estimated"):
        learner = AddWeights(rule, rates)
        selector = F3AST(4, 1, data_sizes=np.ones(4), rng=0)
        for _ in play(selector, online, 4000, learner, available=online):
            pass
        means.append(learner.total / 4000)
    np.testing.assert_allclose(means[0], [2.0, 2.0, 1.0, 1.0], rtol=0.05)
    np.testing.assert_allclose(means[1], 1.0, rtol=0.05)
