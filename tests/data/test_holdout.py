import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.data import reserve
from fedcohort.rng import stream


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.floats(0, 1), st.integers(0, 99))
def test_every_sample_goes_to_exactly_one_side_and_training_keeps_at_least_one(
    sizes, fraction, seed
):
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    train, test = reserve(parts, stream(seed, "reserve"), fraction)
    for part, kept, held in zip(parts, train, test, strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), part)
        assert len(kept) >= 1
        assert abs(len(held) - fraction * len(part)) <= 0.5 or len(kept) == 1
    again = reserve(parts, stream(seed, "reserve"), fraction)
    assert all(np.array_equal(a, b) for a, b in zip(train + test, again[0] + again[1], strict=True))


def test_the_paper_reserves_fifty_of_five_hundred():
    train, test = reserve([np.arange(500)], stream(0, "reserve"))
    assert (len(train[0]), len(test[0])) == (450, 50)
    assert test[0].tolist() != list(range(50))  # drawn, not cut off


def test_a_single_sample_is_trained_on():
    train, test = reserve([np.array([7])], stream(0, "reserve"), 1.0)
    assert (train[0].tolist(), test[0].tolist()) == ([7], [])


def test_a_client_without_samples_is_named():
    with pytest.raises(ValueError, match="but client 1 owns none"):
        reserve([np.array([0]), np.array([], np.int64)], stream(0, "reserve"))
    with pytest.raises(ValueError, match=r"fraction must be between 0 and 1, got 1\.5"):
        reserve([np.array([0])], stream(0, "reserve"), 1.5)
