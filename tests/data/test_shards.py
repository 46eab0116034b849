import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from problems import is_disjoint, problems, sizes_of

from fedcohort.data import label_counts
from fedcohort.data.partitions.shards import shards
from fedcohort.rng import stream


def test_two_shards_give_each_client_at_most_two_labels_where_shards_and_labels_match():
    labels = np.arange(1000) % 10
    # 20 shards of 50 samples, two shards per label
    parts = shards(labels, 10, stream(0, "partition"), shards_per_client=2)
    labels_per_client = (label_counts(labels, parts, 10) > 0).sum(axis=1)
    assert (labels_per_client <= 2).all()
    assert sizes_of(parts) == [100] * 10


@given(problems(least=4), st.integers(1, 4))
def test_shards_are_dealt_whole_whatever_the_sizes(problem, each):
    labels, clients, seed = problem
    parts = shards(labels, clients, stream(seed, "partition"), shards_per_client=each)
    assert is_disjoint(parts, len(labels))
    assert sum(sizes_of(parts)) == len(labels)
    assert max(sizes_of(parts)) - min(sizes_of(parts)) <= 1
