from fractions import Fraction

import numpy as np
import pytest
from exact import water_fill
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.selection import tree as tree_module
from fedcohort.selection.allocation import allocate
from fedcohort.selection.lazy_weights import LazyWeights
from fedcohort.selection.tree_draw import draws_needed


@pytest.fixture(autouse=True)
def _few_blocks(monkeypatch):
    monkeypatch.setattr(tree_module, "MOST_BLOCKS", 4)


def exact_cap(weights, size, sigma):
    """Return theta in rationals: alpha is theta / (1 - sigma)."""
    _, _, alpha = water_fill([Fraction(w) for w in weights.tolist()], size, Fraction(sigma))
    return float(alpha * (1 - Fraction(sigma)))


def inclusion_of(weights, size, sigma):
    """Return every client's probability, from many draws that all report theirs."""
    cap = weights.settle(size, sigma)
    needed = draws_needed(weights.tree, size, in_order=False)
    rng = np.random.default_rng(0)
    known = np.full(weights.num_clients, np.nan)
    for _ in range(400):
        clients, inclusion = weights.draw(size, sigma, cap, rng.random(needed), in_order=False)
        known[clients] = inclusion
    return known


@given(
    weights=st.lists(st.integers(1, 40), min_size=3, max_size=40),
    filled=st.floats(0.01, 0.99),
    phi=st.sampled_from([0, 0.25, 0.5]),
    data=st.data(),
)
def test_the_cap_is_that_of_exact_arithmetic_after_any_changes(weights, filled, phi, data):
    num_clients = len(weights)
    size = max(1, min(num_clients - 1, round(filled * num_clients)))
    sigma = phi * size / num_clients
    lazy = LazyWeights(np.array(weights, dtype=float))
    for _ in range(4):
        values = np.array(weights, dtype=float)
        cap = lazy.settle(size, sigma)
        assert cap == pytest.approx(exact_cap(values, size, sigma), rel=1e-12)
        np.testing.assert_array_equal(lazy.held, np.flatnonzero(values > lazy.limit))
        np.testing.assert_array_equal(lazy.values(), values)
        client = data.draw(st.integers(0, num_clients - 1))
        weights[client] = data.draw(st.integers(1, 400))
        lazy.put(np.array([client]), np.array([float(weights[client])]))
        sigma = data.draw(st.sampled_from([0, 0.25, 0.5, 0.75])) * size / num_clients


@pytest.mark.parametrize(
    ("size", "logs"),
    [
        (1, np.linspace(0, 3, 50)),
        (49, np.linspace(0, 3, 50)),
        (20, np.zeros(50)),
        (10, np.repeat([5.0, 0.0], [10, 40])),  # ties on the cap
        (10, np.repeat([300.0, -300.0], [9, 41])),  # sums of all would lose the small ones
        (20, -4.0 * np.arange(50)),  # one more is capped in every pass
    ],
)
def test_probabilities_of_hard_weights_are_those_of_allocate(size, logs):
    for sigma in (0.0, 0.3 * size / 50):
        expected = allocate(logs, size, sigma).inclusion
        found = inclusion_of(LazyWeights(np.exp(logs)), size, sigma)
        is_known = ~np.isnan(found)
        assert is_known[expected > 0.1].all()
        np.testing.assert_allclose(found[is_known], expected[is_known], rtol=1e-10, atol=1e-10)


def test_everyone_is_drawn_if_all_are_asked():
    lazy = LazyWeights(np.arange(1.0, 11.0))
    cap = lazy.settle(10, 0.0)
    clients, inclusion = lazy.draw(10, 0.0, cap, np.zeros(100), in_order=False)
    assert clients.tolist() == list(range(10))
    assert (inclusion == 1).all()


def test_where_the_floor_takes_all_everyone_has_the_same_chance():
    lazy = LazyWeights(np.append(np.ones(39), 1e9))
    assert lazy.settle(8, 0.0) < np.inf
    assert lazy.held.tolist() == [39]
    found = inclusion_of(lazy, 8, 8 / 40)
    np.testing.assert_allclose(found, 8 / 40)
    assert lazy.held.size == 0
    lazy.settle(8, 0.0)
    assert lazy.held.tolist() == [39]


def test_thousands_of_changes_of_all_weights_leave_the_probabilities_of_allocate():
    rng = np.random.default_rng(0)
    lazy = LazyWeights(rng.random(60))
    weights = lazy.values()
    for step in range(4000):
        size = 12
        sigma = (step % 5) / 5 * size / 60
        expected = allocate(np.log(weights), size, sigma)
        cap = lazy.settle(size, sigma)
        assert np.log(cap) == pytest.approx(float(expected.log_cap), abs=1e-10)
        draws = rng.random(draws_needed(lazy.tree, size, in_order=False))
        clients, inclusion = lazy.draw(size, sigma, cap, draws, in_order=False)
        np.testing.assert_allclose(inclusion, expected.inclusion[clients], rtol=0, atol=1e-10)

        # Those drawn get other weights, at times far above the cap; then all weights change.
        new = weights.mean() * rng.random(size) * 10.0 ** rng.integers(-2, 2, size)
        lazy.put(clients, (new - lazy.shift) / lazy.scale)
        weights[clients] = new
        factor = 1 / weights.sum()
        lazy.scale *= factor
        lazy.shift = lazy.shift * factor + 1e-6
        weights = weights * factor + 1e-6
        np.testing.assert_allclose(lazy.total(), weights.sum(), rtol=1e-10)
        if lazy.shift > 1e-4 or not 1e-100 < lazy.scale < 1e100:
            lazy = LazyWeights(weights)
