import numpy as np
import pytest
from problems import is_same, sizes_of

from fedcohort.data import label_counts
from fedcohort.data.partitions.independent_label import independent_label
from fedcohort.rng import stream


def test_every_client_has_its_exact_share_and_no_sample_twice():
    labels = np.arange(50_000) % 10
    parts = independent_label(labels, 100, stream(0, "partition"), samples_per_client=500)
    assert sizes_of(parts) == [500] * 100
    assert (label_counts(labels, parts, 10).max(axis=1) == 400).all()
    assert all((np.diff(part) > 0).all() for part in parts)


def test_samples_have_as_many_owners_as_independent_draws_give():
    # A sample of label c is drawn with probability 0.08 by a client whose label is c (400 of
    # 5,000) and with 100 of 45,000 by another, so nobody owns it with the chance below.
    labels = np.arange(50_000) % 10
    rng = stream(3, "partition")
    parts = independent_label(labels, 100, rng, samples_per_client=500)
    primary = label_counts(labels, parts, 10).argmax(axis=1)
    owned = np.bincount(np.concatenate(parts), minlength=50_000)
    for label in range(10):
        own = (primary == label).sum()
        chance = (1 - 400 / 5000) ** own * (1 - 100 / 45_000) ** (100 - own)
        without = (owned[labels == label] == 0).sum()
        assert abs(without - 5000 * chance) <= 5 * np.sqrt(5000 * chance * (1 - chance))


def test_primary_labels_are_drawn_equally_often():
    labels = np.arange(4000) % 4
    parts = independent_label(labels, 4000, stream(1, "partition"), samples_per_client=5)
    counts = np.bincount(label_counts(labels, parts, 4).argmax(axis=1), minlength=4)
    assert (np.abs(counts - 1000) <= 5 * np.sqrt(4000 * 0.25 * 0.75)).all()


def test_the_same_generator_gives_the_same_parts_and_another_seed_others():
    labels = np.arange(200) % 4
    first = independent_label(labels, 5, stream(0, "partition"))
    assert is_same(first, independent_label(labels, 5, stream(0, "partition")))
    assert not is_same(first, independent_label(labels, 5, stream(1, "partition")))
    assert sizes_of(first) == [40] * 5


def test_a_share_that_needs_a_sample_twice_is_refused():
    with pytest.raises(ValueError, match="8 are more than the 5 of its label"):
        independent_label([0, 1] * 5, 3, stream(0, "partition"), samples_per_client=10)
