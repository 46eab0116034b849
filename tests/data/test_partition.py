import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.data import PARTITIONS, label_counts
from fedcohort.data.partition import by_client, dirichlet, iid, shards
from fedcohort.data.primary import primary_label
from fedcohort.rng import stream


@st.composite
def problems(draw, least=1):
    """Labels of 1 to 6 classes, some perhaps without samples, and a number of clients with `least` samples each."""
    labels = draw(st.lists(st.integers(0, 5), min_size=least, max_size=150))
    clients = draw(st.integers(1, max(1, len(labels) // least)))
    return np.array(labels), clients, draw(st.integers(0, 99))


@st.composite
def sized(draw):
    """A problem and a wish for sizes that can be met: none, one number, or one per client."""
    labels, clients, seed = draw(problems())
    most = len(labels) // clients
    wish = (
        st.none()
        | st.integers(1, most)
        | st.lists(st.integers(1, most), min_size=clients, max_size=clients)
    )
    return labels, clients, seed, draw(wish)


def sizes_of(parts):
    return [len(part) for part in parts]


def disjoint(parts, count):
    every = np.concatenate(parts)
    return len(np.unique(every)) == len(every) and every.min() >= 0 and every.max() < count


def same(parts, others):
    return len(parts) == len(others) and all(
        np.array_equal(a, b) for a, b in zip(parts, others, strict=True)
    )


@pytest.mark.parametrize("name", ["iid", "primary-label", "shards"])
@given(problem=sized())
def test_parts_are_disjoint_of_the_wanted_sizes_and_the_same_for_a_seed(name, problem):
    labels, clients, seed, wish = problem
    options = {"shards_per_client": 1} if name == "shards" else {}
    parts = PARTITIONS[name](
        labels, clients, stream(seed, "partition"), samples_per_client=wish, **options
    )
    assert disjoint(parts, len(labels))
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in parts)
    if wish is None:
        assert sum(sizes_of(parts)) == len(labels)
        assert max(sizes_of(parts)) - min(sizes_of(parts)) <= 1
    else:
        assert sizes_of(parts) == (wish if isinstance(wish, list) else [wish] * clients)
    assert same(
        parts,
        PARTITIONS[name](
            labels, clients, stream(seed, "partition"), samples_per_client=wish, **options
        ),
    )


@pytest.mark.parametrize("name", ["iid", "primary-label", "dirichlet", "shards"])
def test_another_seed_gives_another_partition(name):
    labels = np.arange(400) % 10
    assert not same(*(PARTITIONS[name](labels, 5, stream(seed, "partition")) for seed in (0, 1)))


def test_iid_clients_own_every_label_in_proportion():
    labels = np.repeat([0, 1], [9000, 1000])
    parts = iid(labels, 10, stream(0, "partition"))
    rare = label_counts(labels, parts, 2)[:, 1]
    error = 5 * np.sqrt(1000 * 0.1 * 0.9 * 0.9)  # five standard errors, drawn without replacement
    assert (np.abs(rare - 100) <= error).all()


# -- primary label


@given(
    st.integers(2, 6), st.integers(1, 8), st.integers(1, 20), st.floats(0.6, 1), st.integers(0, 99)
)
def test_the_primary_share_is_exact_where_the_supply_suffices(classes, clients, size, share, seed):
    labels = (
        np.arange(classes * 2 * clients * size) % classes
    )  # enough even if all draw the same label
    parts = primary_label(
        labels, clients, stream(seed, "partition"), share=share, samples_per_client=size
    )
    wanted = int(np.rint(share * size))
    counts = label_counts(labels, parts, classes)
    assert disjoint(parts, len(labels))
    assert (
        counts.max(axis=1) == wanted
    ).all()  # the primary label: the others together have no more
    assert sizes_of(parts) == [size] * clients


def test_the_papers_partition_of_fifty_thousand_images():
    labels = np.arange(50_000) % 10
    parts = primary_label(labels, 100, stream(0, "partition"), samples_per_client=500)
    counts = label_counts(labels, parts, 10)
    assert disjoint(parts, 50_000)
    assert sizes_of(parts) == [500] * 100
    assert (counts.sum(axis=0) == 5000).all()  # every image has an owner
    assert (
        counts.max(axis=1) == 400
    ).sum() >= 75  # most clients have their 0.8; the shortage is spread over the rest


def test_a_shortage_does_not_follow_the_clients_numbers():
    labels = np.repeat([0, 1], [100, 900])
    short = np.zeros(10)
    for seed in range(300):
        counts = label_counts(labels, primary_label(labels, 10, stream(seed, "partition")), 2)
        short += (
            counts[:, 0] < 80
        )  # label 0 is enough for one client's share: who gets it must be chance
    error = 5 * np.sqrt(300 * 0.25)  # five standard errors of the widest coin
    assert short.max() - short.min() <= 2 * error
    assert (short < 300).all()


def test_shortage_is_filled_from_the_labels_that_are_left():
    labels = np.repeat([0, 1, 2], [4, 4, 92])
    parts = primary_label(labels, 5, stream(3, "partition"), share=1.0)
    assert sizes_of(parts) == [20] * 5
    assert disjoint(parts, 100)


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
    assert (label_counts(labels, parts, classes).max(axis=1) == int(np.rint(share * size))).all()


def test_with_overlap_a_label_is_refilled_only_when_it_has_run_out():
    labels = np.zeros(10, int)
    parts = primary_label(
        labels, 3, stream(0, "partition"), share=1.0, overlap=True, samples_per_client=5
    )
    assert (
        np.bincount(np.concatenate(parts), minlength=10).tolist().count(1) == 5
    )  # ten once each, then five again
    with pytest.raises(
        ValueError,
        match="but 11 of one label and 0 of the others are more than the 10 and 0 there are",
    ):
        primary_label(
            labels, 3, stream(0, "partition"), share=1.0, overlap=True, samples_per_client=11
        )


# -- shards, Dirichlet, natural owners


def test_two_shards_give_each_client_at_most_two_labels_where_shards_and_labels_match():
    labels = np.arange(1000) % 10
    parts = shards(
        labels, 10, stream(0, "partition"), shards_per_client=2
    )  # 20 shards of 50, two to a label
    assert ((label_counts(labels, parts, 10) > 0).sum(axis=1) <= 2).all()
    assert sizes_of(parts) == [100] * 10


@given(problems(least=4), st.integers(1, 4))
def test_shards_are_dealt_whole_whatever_the_sizes(problem, each):
    labels, clients, seed = problem
    parts = shards(labels, clients, stream(seed, "partition"), shards_per_client=each)
    assert disjoint(parts, len(labels))
    assert sum(sizes_of(parts)) == len(labels)
    assert max(sizes_of(parts)) - min(sizes_of(parts)) <= 1


@given(problems(least=12), st.sampled_from([1.0, 10.0, 100.0]), st.booleans())
def test_dirichlet_deals_every_sample_once_and_leaves_no_client_below_the_least(
    problem, alpha, some
):
    labels, clients, seed = problem
    each = len(labels) // clients if some else None
    options = {"alpha": alpha, "min_size": 1, "samples_per_client": each}
    parts = dirichlet(labels, clients, stream(seed, "partition"), **options)
    assert disjoint(parts, len(labels))
    assert sum(sizes_of(parts)) == (each * clients if some else len(labels))
    assert min(sizes_of(parts)) >= 1
    assert same(parts, dirichlet(labels, clients, stream(seed, "partition"), **options))


def test_a_small_alpha_separates_the_labels_and_a_large_one_mixes_them():
    labels = np.arange(10_000) % 10

    def purity(alpha):
        counts = label_counts(
            labels, dirichlet(labels, 10, stream(0, "partition"), alpha=alpha), 10
        )
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert purity(0.1) > 0.4
    assert purity(1000.0) < 0.15


def test_dirichlet_shares_have_the_stated_mean_and_spread():
    labels, alpha, clients = np.zeros(1000, int), 2.0, 4
    sizes = np.array(
        [
            sizes_of(dirichlet(labels, clients, stream(s, "partition"), alpha=alpha, min_size=1))
            for s in range(2000)
        ]
    )
    variance = 0.25 * 0.75 / (clients * alpha + 1)  # of one share of a symmetric Dirichlet
    assert np.abs(sizes.mean(axis=0) / 1000 - 0.25).max() <= 5 * np.sqrt(variance / 2000)
    assert abs(sizes.var() / 1000**2 / variance - 1) <= 0.1


def test_dirichlet_gives_up_with_advice():
    with pytest.raises(
        ValueError,
        match=r"alpha=0.01 left some of 20 clients with fewer than min_size=10 of 400 samples .* raise alpha",
    ):
        dirichlet(np.arange(400) % 4, 20, stream(0, "partition"), alpha=0.01)
    with pytest.raises(ValueError, match="min_size must be a whole number between 1 and 4, got 10"):
        dirichlet(np.arange(400) % 4, 100, stream(0, "partition"))


@given(
    st.lists(st.sampled_from(["ann", "bob", "eve", "zoe"]), min_size=1, max_size=60),
    st.integers(0, 99),
    st.integers(1, 9),
)
def test_natural_owners_keep_their_own_samples(column, seed, most):
    owners, labels = np.unique(column), np.zeros(len(column), int)
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


# -- what all have in common


@pytest.mark.parametrize("name", ["iid", "primary-label", "dirichlet", "shards"])
@pytest.mark.parametrize(
    ("labels", "clients", "wish", "message"),
    [
        ([0, 1, 2], 4, None, "num_clients must be a whole number between 1 and 3, got 4"),
        ([0, 1, 2], 0, None, "num_clients must be a whole number between 1 and 3, got 0"),
        (
            [0, 1, 2],
            2,
            2,
            "samples_per_client must add up to at most 3, the samples there are, got 4",
        ),
        ([0, 1, 2], 2, 0, "samples_per_client must be a whole number at least 1, got 0"),
        (
            [0, 1, 2],
            2,
            [1, 1, 1],
            "samples_per_client must be one number or one for each of 2 clients, got 3",
        ),
        ([], 1, None, "labels must hold at least one sample, got none"),
        ([[0, 1]], 1, None, r"labels must be whole numbers of shape \[N\]"),
        ([0.5, 1.0], 1, None, r"labels must be whole numbers of shape \[N\], got float64"),
    ],
)
def test_what_cannot_be_dealt_is_refused(name, labels, clients, wish, message):
    with pytest.raises(ValueError, match=message):
        PARTITIONS[name](labels, clients, stream(0, "partition"), samples_per_client=wish)


def test_label_counts_are_counted_by_hand():
    parts = [np.array([0, 1, 2]), np.array([], np.int64), np.array([4])]
    assert label_counts([0, 2, 2, 1, 1], parts, 4).tolist() == [
        [1, 0, 2, 0],
        [0, 0, 0, 0],
        [0, 1, 0, 0],
    ]
    assert label_counts([0], [], 2).shape == (0, 2)
    with pytest.raises(
        ValueError, match="labels must be labels between 0 and 1, got 2 at position 1"
    ):
        label_counts([0, 2], parts, 2)
