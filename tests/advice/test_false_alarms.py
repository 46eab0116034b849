"""Clients that stay the same and fail alone are not said to change, to share or to stay away."""

from dataclasses import replace

import numpy as np
import pytest
from test_estimators import asked_in_part, chain

from fedcohort.advice import Options, advise, sentences
from fedcohort.advice.change import find_change
from fedcohort.advice.estimates import Interval, bootstrap_weights
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.own_rates import group_rounds, shrink_rates, split_tables
from fedcohort.advice.persistence import Persistence, estimate_persistence
from fedcohort.advice.rates import estimate_rates
from fedcohort.advice.together import estimate_together
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.registry import Federation, make_selector


def timed_log(deadline_of, rng, rounds=200, medians=None):
    """A log of 30 clients that answer nine times of ten, six asked per round.

    Args:
        deadline_of: The deadline of a round.
        rng: Source of randomness.
        rounds: Number of rounds.
        medians: Median seconds of each client in each round [T, K]; by default 20.
    """
    questions = []
    deadlines = {}
    for round in range(rounds):
        deadlines[round] = deadline_of(round)
        for client in rng.choice(30, size=6, replace=False):
            median = 20.0 if medians is None else medians[round, client]
            seconds = median * float(np.exp(0.5 * rng.standard_normal()))
            came = seconds <= deadlines[round] and rng.random() < 0.9
            time = seconds if came else np.nan
            questions.append(Question(round, str(client), bool(came), time))
    return make_log("made", questions, deadlines=deadlines)


PATTERNS = {
    "step": lambda round: 15.0 if round < 100 else 60.0,
    "alternating": lambda round: 15.0 if round % 2 else 60.0,
    "blocks": lambda round: 15.0 if round // 10 % 2 else 60.0,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_deadlines_that_differ_are_no_behaviour_of_clients(pattern):
    """Of six logs, two are wrong at 2.5 % with a chance of 1 in 100: change at 0.5 % far less."""
    changes = 0
    together = 0
    lasting = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        log = timed_log(PATTERNS[pattern], rng)
        persistence = estimate_persistence(log)
        rates = estimate_rates(log, persistence, rng)
        weights = bootstrap_weights(200, 200, 6, rng)
        changes += find_change(log, rng).is_certain
        together += estimate_together(log, rates.mean, weights, block=6).is_certain
        lasting += persistence.is_certain
    assert changes == 0
    assert together <= 1
    assert lasting <= 1


def test_a_change_is_found_though_deadlines_differ():
    """From round 100 on, the fast clients are slow and the slow ones are fast."""
    rng = np.random.default_rng(0)
    medians = np.repeat([8.0, 50.0], 15)
    is_before = np.arange(200)[:, None] < 100
    table = np.where(is_before, medians, medians[::-1])
    found = find_change(timed_log(PATTERNS["alternating"], rng, medians=table), rng)
    assert found.is_certain
    assert found.first <= 100 <= found.last


def test_nothing_is_said_where_hardly_two_rounds_have_the_same_deadline():
    rng = np.random.default_rng(0)
    log = timed_log(lambda round: 15.0 + round, rng, rounds=60)
    advice = advise(log, Options(selectors=("random",), rounds=20))
    texts = [one.text for one in sentences(advice) if "have the same deadline" in one.text]
    assert len(texts) == 3
    assert not advice.change.is_possible
    assert not advice.persistence.is_certain
    assert not advice.together.is_certain


def test_deadlines_that_hardly_differ_are_one():
    questions = [Question(round, "a", True) for round in range(4)]
    log = make_log("made", questions, deadlines={0: 10.0, 1: 10.4, 2: 20.0, 3: np.inf})
    assert group_rounds(log).tolist() == [0, 0, 1, 2]
    assert group_rounds(replace(log, deadlines=None)).tolist() == [0, 0, 0, 0]


def test_a_client_has_a_column_for_each_deadline_at_which_it_was_asked():
    # "a" is asked in rounds 0 and 1, which have two deadlines, and "b" in round 1 alone.
    questions = [Question(0, "a", True), Question(1, "a", False), Question(1, "b", True)]
    log = make_log("made", questions, deadlines={0: 10.0, 1: 20.0})
    asked, arrived = split_tables(log, np.array([0, 1]))
    assert asked.tolist() == [[True, False, False], [False, True, True]]
    assert arrived.tolist() == [[True, False, False], [False, False, True]]


def test_rates_are_shrunk_by_their_variances():
    """Four of 8 and eight of 8: within 2 / 14, among 8 (1/16 + 1/16), so between is 6 / 56.

    Their ratio 4/3 counts as so many answers at the mean rate of 3/4.
    """
    found = shrink_rates(np.array([8.0, 8.0]), np.array([4.0, 8.0]))
    assert found.mean.tolist() == pytest.approx([5 / (8 + 4 / 3), 9 / (8 + 4 / 3)])
    count = 8 + 4 / 3
    variance = found.mean * (1 - found.mean) * count / (count + 1)
    assert found.variance.tolist() == pytest.approx(variance.tolist())
    assert found.error.tolist() == pytest.approx((variance / count).tolist())


def test_a_selector_that_asks_again_whom_it_missed_does_not_make_failures_last():
    """Independent answers: of twenty logs, four are wrong at 2.5 % with a chance of 1 in 700."""
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rates = rng.choice([0.3, 0.6, 0.9], 30)
        selector = make_selector("age", Federation(30, 6, rng=seed, horizon=200))
        questions = []
        for round in range(200):
            cohort = selector.select(round)
            came = rng.random(6) < rates[cohort.clients]
            selector.update(Outcome(cohort, came))
            for client, answered in zip(cohort.clients.tolist(), came.tolist(), strict=True):
                questions.append(Question(round, str(client), answered))
        false += estimate_persistence(make_log("made", questions)).is_certain
    assert false <= 3


@pytest.mark.parametrize("decay", [0.7, 0.85])
def test_failures_that_last_are_no_change(decay):
    """Of forty logs, seven at 5 % have a chance of 1 in 300."""
    possible = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rates = rng.choice([0.3, 0.6, 0.9], 30)
        log = asked_in_part(chain(rates, decay, 100, rng), 6, rng)
        possible += find_change(log, rng).is_possible
    assert possible <= 6


def test_how_long_clients_stay_away_where_they_differ_by_hand():
    """Rates 0.1 and 0.9, half of the state lasts: a client begins 0.5 * 0.09 failures per round."""
    lasting = Persistence(Interval(0.5, 0.4, 0.6), 1.0, 0.5, 0.5, 0.09, is_certain=True)
    assert lasting.off_rounds == pytest.approx(0.5 / 0.045)
    assert lasting.on_rounds == pytest.approx(0.5 / 0.045)


def test_intervals_of_how_long_clients_stay_away_hold_the_truth_where_they_differ():
    """The paper's rates. Sixteen logs: at 95 %, fewer than 12 have a chance of 1 in 1,000."""
    rates = np.repeat([0.1, 0.3, 0.6, 0.9], 10)
    begins = 0.2 * (rates * (1 - rates)).mean()
    off = (1 - rates.mean()) / begins
    on = rates.mean() / begins
    holds_off = 0
    holds_on = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        found = estimate_persistence(asked_in_part(chain(rates, 0.8, 300, rng), 20, rng))
        holds_off += found.off_interval.low <= off <= found.off_interval.high
        holds_on += found.on_interval.low <= on <= found.on_interval.high
        assert found.off_rounds == pytest.approx(off, rel=0.5)
    assert holds_off >= 12
    assert holds_on >= 12
