import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import is_disjoint, sizes_of

from fedcohort.data import label_counts
from fedcohort.data.partitions.primary_label import primary_label
from fedcohort.rng import stream


@given(
    st.integers(2, 6), st.integers(1, 8), st.integers(1, 20), st.floats(0.6, 1), st.integers(0, 99)
)
def test_the_primary_share_is_exact_where_the_supply_suffices(classes, clients, size, share, seed):
    # enough samples even if all clients draw the same label
    labels = np.arange(classes * 2 * clients * size) % classes
    parts = primary_label(
        labels, clients, stream(seed, "partition"), share=share, samples_per_client=size
    )
    wanted = int(np.rint(share * size))
    counts = label_counts(labels, parts, classes)
    assert is_disjoint(parts, len(labels))
    # the highest count is that of the primary label: the others together have no more
    assert (counts.max(axis=1) == wanted).all()
    assert sizes_of(parts) == [size] * clients


def test_the_papers_partition_of_fifty_thousand_images():
    labels = np.arange(50_000) % 10
    parts = primary_label(labels, 100, stream(0, "partition"), samples_per_client=500)
    counts = label_counts(labels, parts, 10)
    assert is_disjoint(parts, 50_000)
    assert sizes_of(parts) == [500] * 100
    assert (counts.sum(axis=0) == 5000).all()  # every image has an owner
    # most clients own their share of 0.8, and the shortage is spread over the rest
    assert (counts.max(axis=1) == 400).sum() >= 75


def test_a_shortage_does_not_follow_the_clients_numbers():
    labels = np.repeat([0, 1], [100, 900])
    short = np.zeros(10)
    for seed in range(300):
        parts = primary_label(labels, 10, stream(seed, "partition"))
        # label 0 suffices for the share of one client, which must be drawn at random
        short += label_counts(labels, parts, 2)[:, 0] < 80
    error = 5 * np.sqrt(300 * 0.25)  # five standard errors of the widest coin
    assert short.max() - short.min() <= 2 * error
    assert (short < 300).all()


def test_shortage_is_filled_from_the_labels_that_are_left():
    labels = np.repeat([0, 1, 2], [4, 4, 92])
    parts = primary_label(labels, 5, stream(3, "partition"), share=1.0)
    assert sizes_of(parts) == [20] * 5
    assert is_disjoint(parts, 100)


@given(
    st.integers(2, 6), st.integers(1, 12), st.integers(1, 20), st.floats(0.6, 1), st.integers(0, 99)
)
def test_with_overlap_every_share_is_exact_and_no_client_owns_a_sample_twice(
    classes, clients, size, share, seed
):
    labels = np.arange(classes * size) % classes  # one client's worth of each label
    parts = primary_label(
        labels,
        clients,
        stream(seed, "partition"),
        share=share,
        overlap=True,
        samples_per_client=size,
    )
    assert all(len(np.unique(part)) == size for part in parts)
    wanted = int(np.rint(share * size))
    assert (label_counts(labels, parts, classes).max(axis=1) == wanted).all()


def test_with_overlap_a_label_is_refilled_only_when_it_has_run_out():
    labels = np.zeros(10, int)
    parts = primary_label(
        labels, 3, stream(0, "partition"), share=1.0, overlap=True, samples_per_client=5
    )
    # all ten samples once, then five of them again
    owners_per_sample = np.bincount(np.concatenate(parts), minlength=10)
    assert owners_per_sample.tolist().count(1) == 5
    with pytest.raises(
        ValueError,
        match="but 11 of one label and 0 of the others are more than the 10 and 0 there are",
    ):
        primary_label(
            labels, 3, stream(0, "partition"), share=1.0, overlap=True, samples_per_client=11
        )
