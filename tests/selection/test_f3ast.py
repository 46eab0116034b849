import numpy as np
import pytest

from fedcohort.selection.f3ast import F3AST
from fedcohort.selection.protocol import Outcome


def tell(selector, round, clients):
    """Play a round in which exactly these clients can be asked, and return its cohort."""
    cohort = selector.select(round, clients)
    selector.update(Outcome(cohort, np.ones(cohort.clients.shape)))
    return cohort


def test_rates_weights_and_order_of_a_case_worked_by_hand():
    # K = 3, k = 1, omega = (1/4, 1/4, 1/2), beta = 1/2. The rates start at k omega.
    selector = F3AST(3, 1, data_sizes=[5, 5, 10], rng=0, memory=0.5)
    np.testing.assert_allclose(selector.rates, [0.25, 0.25, 0.5], rtol=1e-14)

    # Client 2 is asked: r = (1/8, 1/8, 1/4 + 1/2), and it counts 1 / r = 4/3 of its share.
    np.testing.assert_allclose(tell(selector, 0, [2]).weights, [4 / 3], rtol=1e-14)
    np.testing.assert_allclose(selector.rates, [0.125, 0.125, 0.75], rtol=1e-14)

    # omega / r = (2, 2, 2/3): of 1 and 2, client 1 goes first. r = (1/16, 9/16, 3/8).
    cohort = tell(selector, 1, [1, 2])
    assert cohort.clients.tolist() == [1]
    np.testing.assert_allclose(cohort.weights, [16 / 9], rtol=1e-14)
    np.testing.assert_allclose(selector.rates, [0.0625, 0.5625, 0.375], rtol=1e-14)

    # omega / r = (4, 4/9, 4/3).
    assert selector.select(2).clients.tolist() == [0]
    assert selector.select(2, [1, 2]).clients.tolist() == [2]


def test_clients_that_lag_alike_tie_whatever_their_data_and_the_rounding():
    # Clients 0 and 1 alone are there for nine rounds; then the other eight lag alike. Each of
    # them is one of the two asked in a quarter of 2,000 draws, within five standard errors.
    selector = F3AST(10, 2, data_sizes=[5, 5, 3, 7, 11, 13, 17, 19, 23, 29], rng=0)
    for round in range(9):
        tell(selector, round, [0, 1])
    asked = np.zeros(10)
    for _ in range(2000):
        asked[selector.select(9).clients] += 1
    assert np.abs(asked[2:] - 500).max() <= 5 * np.sqrt(2000 * 0.25 * 0.75)


def test_a_client_asked_in_vain_counts_as_asked():
    selector = F3AST(3, 1, data_sizes=[5, 5, 10], rng=0, memory=0.5)
    cohort = selector.select(0, [2])
    selector.update(Outcome(cohort, [0]))
    np.testing.assert_allclose(selector.rates, [0.125, 0.125, 0.75], rtol=1e-14)


def test_rates_sum_to_the_cohort_size_and_start_capped_at_one():
    # 2 * 98/100 > 1, so client 0 gets 1, and the other two share what is left.
    selector = F3AST(3, 2, data_sizes=[98, 1, 1], rng=0)
    np.testing.assert_allclose(selector.rates, [1.0, 0.5, 0.5], rtol=1e-14)
    for round in range(50):
        selector.update(Outcome(selector.select(round), [1, 1]))
        assert selector.rates.sum() == pytest.approx(2, rel=1e-12)


def test_weights_make_up_for_absence_in_the_long_run():
    # Client 0 is there in every fourth round alone; two of four equal clients are asked. In the
    # long run the weights 1/r sum to as many as rounds were played, for every client.
    selector = F3AST(4, 2, data_sizes=[10, 10, 10, 10], rng=0)
    total = np.zeros(4)
    rounds = 4000
    for round in range(rounds):
        online = np.array([round % 4 == 0, True, True, True])
        cohort = tell(selector, round, online)
        if round >= rounds - 2000:
            total[cohort.clients] += cohort.weights
    np.testing.assert_allclose(total / 2000, 1.0, atol=0.03)  # memory 0.01: rates are 1 % rough


def test_a_client_away_for_very_long_keeps_a_finite_weight():
    selector = F3AST(3, 1, data_sizes=[5, 5, 10], rng=0, memory=0.9)
    for round in range(1000):
        tell(selector, round, [0, 1])
    cohort = selector.select(1000)
    assert cohort.clients.tolist() == [2]
    assert cohort.weights.tolist() == pytest.approx([1 / 0.9])


@pytest.mark.parametrize("memory", [0.0, -0.1, 1.5, "x"])
def test_a_memory_out_of_bounds_is_refused(memory):
    with pytest.raises(ValueError, match=r"memory must be between .* and 1.0, got"):
        F3AST(3, 1, data_sizes=[5, 5, 10], rng=0, memory=memory)
