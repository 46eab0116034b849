from itertools import combinations

import numpy as np
import pytest
from exact import Rigged, chance_of_counts, members
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.rng import stream
from fedcohort.selection import large
from fedcohort.selection.allocation import allocate
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.sampling import SAMPLERS


def cohorts(logs, k, floor, draws):
    many = np.broadcast_to(logs, (draws, logs.size))
    return large.draw(many, np.exp(many), k, floor, np.random.default_rng(0))[0]


@given(
    seed=st.integers(0, 10**6),
    num_clients=st.integers(33, 120),
    spread=st.sampled_from([0.0, 0.1, 3.0, 30.0]),
    filled=st.floats(0.01, 0.99),
    phi=st.sampled_from([0.0, 0.5]) | st.floats(0, 0.99),
    numbers=st.lists(
        st.sampled_from([0.0, 2.0**-53, 0.5, 1 - 2.0**-53]) | st.floats(0, 0.999),
        min_size=1,
        max_size=20,
    ),
)
def test_a_draw_has_k_distinct_clients_with_the_probabilities_of_allocate(
    seed, num_clients, spread, filled, phi, numbers
):
    logs = np.random.default_rng(seed).normal(0, spread, num_clients)
    k = max(1, round(filled * (num_clients - 1)))
    floor = phi * k / num_clients
    expected = allocate(logs, k, floor)
    clients, inclusion, log_cap = large.draw(logs, np.exp(logs), k, floor, Rigged(numbers))
    assert clients.shape == (k,)
    assert (np.diff(clients) > 0).all()
    assert clients[0] >= 0
    assert clients[-1] < num_clients
    np.testing.assert_allclose(
        inclusion, expected.inclusion[clients], rtol=0, atol=1e-12 * num_clients
    )
    assert log_cap == pytest.approx(float(expected.log_cap), rel=1e-12, abs=1e-11)
    assert np.isin(np.flatnonzero(expected.capped), clients).all()


def test_draws_hit_their_targets():
    num_clients = 61  # whatever the number, random borders leave a partial block
    floor = 0.1
    logs = np.random.default_rng(1).normal(0, 1, num_clients)
    logs[:3] = 9.0
    p = allocate(logs, 20, floor).inclusion
    assert (p[:3] == 1).all()
    clients = cohorts(logs, 20, floor, 40_000)
    assert chance_of_counts(clients, p) > 1e-6
    assert members(clients, num_clients)[:, p == 1].all()


def test_every_pair_can_meet():
    inside = members(cohorts(np.zeros(64), 8, 0.0, 5_000), 64).astype(int)
    together = inside.T @ inside  # a uniform choice has each pair 69 times
    assert min(together[i, j] for i, j in combinations(range(64), 2)) > 0


@pytest.mark.parametrize("layout", ["interleaved", "in order of id"])
def test_class_totals_of_a_cohort_vary_no_more_than_under_independent_draws(layout):
    num_clients = 64_000
    k = 1000
    kind = np.arange(num_clients) * 4 // num_clients
    if layout == "interleaved":
        kind = np.arange(num_clients) % 4
    rng = np.random.default_rng(0)
    error = 5 * (k * 0.25 * 0.75) ** 0.5  # five standard errors of independent draws
    for _ in range(20):
        clients, _, _ = large.draw(np.zeros(num_clients), np.ones(num_clients), k, 0.0, rng)
        assert (np.abs(np.bincount(kind[clients], minlength=4) - k / 4) <= error).all()


@pytest.mark.parametrize("algorithm", ["scan", "tree"])
@pytest.mark.parametrize("update", ["paper", "robust"])
def test_a_large_e3cs_learns_what_the_small_one_would(monkeypatch, update, algorithm):
    monkeypatch.setattr(large, "LARGE", 1)
    selector = E3CS(80, 20, rng=0, quota=0.2, update=update, algorithm=algorithm)
    for round in range(60):
        logs = selector.log_weights
        small = allocate(logs, 20, 0.2 * 20 / 80)
        cohort = selector.select(round)
        np.testing.assert_allclose(
            cohort.inclusion, small.inclusion[cohort.clients], rtol=0, atol=1e-10
        )
        before = logs.copy()
        success = (cohort.clients + round) % 3 > 0
        selector.update(Outcome(cohort, success))
        step = 0.5 * 16 / 80
        x = np.ones(80)
        x[cohort.clients] = success
        if update == "paper":
            asked = np.isin(np.arange(80), cohort.clients)
            expected = before + step * asked * x / small.inclusion * ~small.capped
        else:
            logs = np.minimum(before, small.log_cap) - step * (1 - x) / small.inclusion
            expected = np.log((1 - 1e-4) * np.exp(logs) / np.exp(logs).sum() + 1e-4 / 80)
        np.testing.assert_allclose(selector.log_weights, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("algorithm", ["scan", "tree"])
@pytest.mark.parametrize(
    "shape", ["one jackpot", "a spread beyond float64", "ties on the cap", "geometric"]
)
def test_hard_weights_are_drawn_or_left_to_the_sort(monkeypatch, shape, algorithm):
    monkeypatch.setattr(large, "LARGE", 1)
    selector = E3CS(100, 20, rng=0, algorithm=algorithm)
    weights = {
        "one jackpot": np.append(np.zeros(99), 2000.0),
        "a spread beyond float64": np.linspace(-2000, 2000, 100),
        "ties on the cap": np.repeat([223.0, -500.0], [20, 80]) * (1 + 1e-9 * np.arange(100) / 100),
        "geometric": -5.0 * np.arange(100),
    }
    selector.log_weights = weights[shape]
    p = allocate(selector.log_weights, 20).inclusion
    cohort = selector.select(0)
    assert cohort.clients.size == 20
    np.testing.assert_allclose(cohort.inclusion, p[cohort.clients], rtol=0, atol=1e-9)
    assert np.isin(np.flatnonzero(p == 1), cohort.clients).all()


@pytest.mark.parametrize("algorithm", ["auto", "scan"])
def test_federations_too_large_to_be_sorted_have_the_probabilities_of_allocate(algorithm):
    selector = E3CS(large.LARGE, 500, rng=0, quota=0.5, algorithm=algorithm)
    selector.log_weights = np.random.default_rng(0).normal(0, 3, large.LARGE)
    p = allocate(selector.log_weights, 500, 0.5 * 500 / large.LARGE)
    cohort = selector.select(0)
    np.testing.assert_allclose(cohort.inclusion, p.inclusion[cohort.clients], rtol=1e-9)
    assert selector.log_cap == pytest.approx(float(p.log_cap), rel=1e-12)


@pytest.mark.parametrize("algorithm", ["scan", "tree"])
def test_a_large_run_in_a_batch_is_the_run_alone(monkeypatch, algorithm):
    monkeypatch.setattr(large, "LARGE", 100)
    alone = E3CS(100, 10, rng=3, algorithm=algorithm)
    together = E3CS(100, 10, rng=[3, 4], algorithm=algorithm)
    np.testing.assert_array_equal(together.select(0).clients[0], alone.select(0).clients)


@pytest.mark.parametrize("name", ["pivotal", "successive"])
def test_other_samplers_draw_in_large_federations_as_in_small_ones(monkeypatch, name):
    monkeypatch.setattr(large, "LARGE", 1)
    selector = E3CS(80, 20, rng=3, sampler=name)
    selector.log_weights = np.random.default_rng(1).normal(0, 1, 80)
    p = allocate(selector.log_weights, 20).inclusion
    expected = SAMPLERS[name](p, stream(3, "selection"), 20)
    np.testing.assert_array_equal(selector.select(0).clients, expected)


def test_blocks_are_shuffled_so_that_most_of_a_cohort_may_be_neighbours():
    # 40 blocks of 16 clients share 8 marks. In the order of the ids, equally spaced marks would
    # put 3 to 5 of 8 clients into either half. In random order about 8 of 40 blocks are hit, so
    # at least 6 of 8 are in the first half with probability 0.118: that none of 500 cohorts is
    # like that has chance 1e-27.
    inside = members(cohorts(np.zeros(640), 8, 0.0, 500), 640)
    assert inside[:, :320].sum(axis=1).max() >= 6


def test_draws_that_are_left_to_the_sort_hit_their_targets():
    # The floor takes all, so no cap exists and every draw is left to the sort.
    clients = cohorts(np.zeros(40), 8, 8 / 40, 4_000)
    assert chance_of_counts(clients, np.full(40, 8 / 40)) > 1e-6
