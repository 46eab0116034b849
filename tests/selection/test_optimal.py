import numpy as np

from fedcohort.selection.optimal import OptimalSampling
from fedcohort.selection.protocol import Outcome


def tell(selector, round, clients, norm, success=None):
    """Play a round in which exactly these clients can be asked."""
    cohort = selector.select(round, clients)
    if success is None:
        success = np.ones(len(clients))
    norm = np.where(np.array(success) > 0, norm, np.nan)
    selector.update(Outcome(cohort, success, norm=norm))


def test_probabilities_of_a_case_worked_by_hand():
    # K = 4, k = 2, omega = (1, 1, 2, 4) / 8, norms (8, 4, 2, 1): u = (1, 1/2, 1/2, 1/2).
    # 2 u / 2.5 = (0.8, 0.4, 0.4, 0.4): nobody is above 1.
    selector = OptimalSampling(4, 2, data_sizes=[10, 10, 20, 40], rng=0)
    tell(selector, 0, [0, 1], [8.0, 4.0])
    tell(selector, 1, [2, 3], [2.0, 1.0])
    np.testing.assert_allclose(selector.inclusion(2), [0.8, 0.4, 0.4, 0.4], rtol=1e-12)


def test_who_would_get_more_than_one_is_asked_for_certain():
    # u = (9, 1, 1, 1) and k = 2: with l = 3 of the ascending order, k + l - K = 1 <= 3 / 1, and
    # with l = 4 it would be 2 <= 12 / 9, which fails. So p = 1 * u / 3 for three, and 1 for one.
    selector = OptimalSampling(4, 2, data_sizes=np.ones(4), rng=0)
    tell(selector, 0, [0, 1], [9.0, 1.0])
    tell(selector, 1, [2, 3], [1.0, 1.0])
    np.testing.assert_allclose(selector.inclusion(2), [1, 1 / 3, 1 / 3, 1 / 3], rtol=1e-12)


def test_the_last_length_that_arrived_counts_and_the_unknown_count_as_the_longest():
    # Client 0 reports 2, then 6, then nothing; client 1 reports 3. The other two count as 6.
    selector = OptimalSampling(4, 1, data_sizes=np.ones(4), rng=0)
    tell(selector, 0, [0], [2.0])
    tell(selector, 1, [0], [6.0])
    tell(selector, 2, [0], [1.0], success=[0])
    tell(selector, 3, [1], [3.0])
    np.testing.assert_allclose(selector.inclusion(4), np.array([6, 3, 6, 6]) / 21, rtol=1e-12)


def test_an_update_that_moves_nothing_keeps_a_probability():
    selector = OptimalSampling(3, 1, data_sizes=np.ones(3), rng=0)
    tell(selector, 0, [0], [0.0])
    assert (selector.inclusion(1) > 0).all()
    for client in (1, 2):
        tell(selector, 1, [client], [5.0])
    chance = selector.inclusion(2)
    np.testing.assert_allclose(chance[0] / chance[1], 1e-6, rtol=1e-9)
    nothing_moves = OptimalSampling(2, 1, data_sizes=[1, 3], rng=0)
    for client in (0, 1):
        tell(nothing_moves, 0, [client], [0.0])
    np.testing.assert_allclose(nothing_moves.inclusion(1), [0.25, 0.75], rtol=1e-12)


def test_inverse_probabilities_estimate_the_sum_of_all_updates_without_bias():
    # Updates of 1 to 6; their sum is 21. Draw 20,000 cohorts; five standard errors.
    selector = OptimalSampling(6, 2, data_sizes=np.ones(6), rng=0)
    for client in range(6):
        tell(selector, 0, [client], [client + 1.0])
    updates = np.arange(1.0, 7.0)
    estimates = []
    for _ in range(20_000):
        cohort = selector.select(1)
        estimates.append((updates[cohort.clients] * cohort.correction).sum())
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - 21) <= 5 * error + 1e-9
