"""The samples of every step of a client's local update."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.learning.batches import Batches, draw_batches

QUICK = settings(max_examples=50, deadline=None)


@QUICK
@given(
    count=st.integers(1, 40),
    epochs=st.integers(1, 4),
    size=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_every_epoch_uses_every_sample_exactly_once_and_fills_only_its_last_batch(
    count, epochs, size, seed
):
    samples = 7 + 3 * np.arange(count)
    rows = draw_batches(samples, epochs, size, np.random.default_rng(seed))
    per_epoch = -(-count // size)
    assert rows.shape == (epochs * per_epoch, size)
    for epoch in rows.reshape(epochs, per_epoch, size):
        assert sorted(epoch[epoch >= 0].tolist()) == samples.tolist()
        assert (epoch[:-1] >= 0).all()
        assert (epoch.ravel()[count:] == -1).all()
        assert (epoch >= -1).all()
    assert np.array_equal(rows, draw_batches(samples, epochs, size, np.random.default_rng(seed)))


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    one, other = draw_batches(np.arange(100), 2, 100, np.random.default_rng(0))
    assert not np.array_equal(one, other)
    assert not np.array_equal(
        one, draw_batches(np.arange(100), 1, 100, np.random.default_rng(1))[0]
    )


def test_the_samples_given_are_not_shuffled_in_place():
    samples = np.arange(50)
    draw_batches(samples, 3, 10, np.random.default_rng(0))
    assert np.array_equal(samples, np.arange(50))


def test_every_sample_is_equally_likely_to_come_first():
    draws, rng = 4000, np.random.default_rng(5)
    first = np.array([draw_batches(np.arange(5), 1, 2, rng)[0, 0] for _ in range(draws)])
    error = 5 * np.sqrt(0.2 * 0.8 / draws)  # five standard errors
    assert (np.abs(np.bincount(first, minlength=5) / draws - 0.2) <= error).all()


@QUICK
@given(
    count=st.integers(1, 40),
    epochs=st.integers(1, 4),
    size=st.integers(1, 12),
    pieces=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=6),
)
def test_what_is_drawn_does_not_depend_on_when_it_is_asked_for(count, epochs, size, pieces):
    samples = 3 * np.arange(count)
    expected = draw_batches(samples, epochs, size, np.random.default_rng(1))
    batches = Batches(samples, epochs, size, np.random.default_rng(1))
    assert len(batches) == len(expected)
    for first, last in pieces:
        assert np.array_equal(batches[first:last], expected[first:last])
    assert np.array_equal(batches[:], expected)


def test_later_epochs_are_drawn_later():
    rng = np.random.default_rng(0)
    batches = Batches(np.arange(10), 3, 5, rng)
    batches[0:2]
    other = np.random.default_rng(0)
    other.permuted(np.arange(10))
    assert rng.bit_generator.state == other.bit_generator.state
