"""The sum over grids beside exact integrals, and what the deadline hid beside the truth."""

from math import comb, lgamma, log

import numpy as np
import pytest

from fedcohort.advice.deadline import advise_deadline
from fedcohort.advice.durations import Counts
from fedcohort.advice.log import Question, make_log
from fedcohort.advice.special_functions import jacobi_rule, normal_tail
from fedcohort.advice.unseen import ClientGrid


def log_beta(a, b):
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@pytest.mark.parametrize(
    ("at_zero", "at_one"), [(1.0, 1.0), (0.5, 0.5), (0.01, 1.0), (1.0, 0.01), (1e-4, 1e-4)]
)
def test_a_jacobi_rule_is_exact_for_powers(at_zero, at_one):
    """The integral of x^(a + n - 1) (1 - x)^(b - 1) is the Beta function of a + n and b."""
    points, weights = jacobi_rule(6, at_zero, at_one)
    for power in range(12):
        exact = np.exp(log_beta(at_zero + power, at_one))
        assert weights @ points**power == pytest.approx(exact, rel=1e-8)
        exact = np.exp(log_beta(at_zero, at_one + power))
        assert weights @ (1 - points) ** power == pytest.approx(exact, rel=1e-8)


def log_integral(answers, late, never, unsure, tail, above, below):
    """The integral over q by the binomial theorem: (1 - q + q t)^u is a sum of Beta functions."""
    total = 0.0
    for j in range(unsure + 1):
        beta = log_beta(above + answers + late + j, below + never + unsure - j)
        total += comb(unsure, j) * tail**j * np.exp(beta - log_beta(above, below))
    return log(total) + late * log(tail)


@pytest.mark.parametrize("concentration", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("mean", [0.02, 0.5, 0.9, 0.97, 0.99, 0.998])
@pytest.mark.parametrize(
    ("answers", "late", "never", "unsure"),
    [(73, 0, 0, 27), (0, 0, 0, 0), (10, 0, 0, 0), (0, 0, 0, 10), (0, 0, 30, 0), (20, 5, 10, 40)],
)
def test_how_likely_a_client_is_equals_the_exact_integral(
    mean, concentration, answers, late, never, unsure
):
    """Also where the prior has no bound at 0 or 1, because clients never or always answer."""
    score = 0.6  # of the deadline, so that answers are late with probability 0.27
    one = np.ones(1)
    counts = Counts(
        answers=answers * one,
        sums=0 * one,
        squares=0 * one,
        never=never * one,
        client=np.zeros(1, dtype=np.int64),
        deadline=np.exp(score * one),
        late=late * one,
        unsure=unsure * one,
    )
    grid = ClientGrid(counts, means=np.zeros((1, 1)), step=one)
    shared = np.array([0.0, 0.0, 0.0, log(mean / (1 - mean)), log(concentration)])
    answer_rates, table = grid.tables(shared)
    assert ((answer_rates > 0) & (answer_rates <= 1)).all()
    tail = float(normal_tail(score))
    above = mean * concentration
    below = (1 - mean) * concentration
    exact = log_integral(answers, late, never, unsure, tail, above, below)
    assert log(np.exp(table).sum()) == pytest.approx(exact, abs=0.02)


def test_the_share_that_a_deadline_keeps_holds_the_truth_where_most_failures_are_slow():
    """Clients answer with 97 %, median 7.39 s and spread 0.5; 73 % of these within 10 s.

    Twelve logs: at 95 % fewer than nine have a chance of 1 in 400.
    """
    truth = 1 - float(normal_tail((log(10.0) - 2.0) / 0.5))
    holds = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        questions = []
        for round in range(100):
            for client in rng.choice(20, size=5, replace=False):
                seconds = float(rng.lognormal(2.0, 0.5))
                came = seconds <= 10 and rng.random() < 0.97
                time = seconds if came else np.nan
                questions.append(Question(round, str(client), came, time))
        found = advise_deadline(make_log("made", questions, deadline=10.0), 5, rng).present_kept
        holds += found.low <= truth <= found.high
    assert holds >= 9
