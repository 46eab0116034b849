import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import sizes_of

from fedcohort.data.partitions.by_client import by_client
from fedcohort.rng import stream


@given(
    st.lists(st.sampled_from(["ann", "bob", "eve", "zoe"]), min_size=1, max_size=60),
    st.integers(0, 99),
    st.integers(1, 9),
)
def test_natural_owners_keep_their_own_samples(column, seed, most):
    owners = np.unique(column)
    labels = np.zeros(len(column), int)
    parts = by_client(labels, None, stream(seed, "partition"), clients=column)
    assert [set(np.array(column)[part]) for part in parts] == [{owner} for owner in owners]
    assert sum(sizes_of(parts)) == len(column)
    few = by_client(labels, 1, stream(seed, "partition"), clients=column, samples_per_client=most)
    whole = next(part for part in parts if few[0][0] in part)
    assert set(few[0]) <= set(whole)
    assert len(few[0]) == min(most, len(whole))


def test_more_clients_than_owners_are_refused():
    with pytest.raises(
        ValueError, match="num_clients must be a whole number between 1 and 2, got 3"
    ):
        by_client([0, 0, 0], 3, stream(0, "partition"), clients=[7, 7, 9])
    with pytest.raises(
        ValueError, match=r"clients must have the shape of labels \(3,\), got \(2,\)"
    ):
        by_client([0, 0, 0], 2, stream(0, "partition"), clients=[7, 9])
