import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import is_disjoint, is_same, problems, sizes_of

from fedcohort.data import label_counts
from fedcohort.data.partitions.dirichlet import dirichlet
from fedcohort.rng import stream


@given(problems(least=12), st.sampled_from([1.0, 10.0, 100.0]), st.booleans())
def test_dirichlet_deals_every_sample_once_and_leaves_no_client_below_the_least(
    problem, alpha, some
):
    labels, clients, seed = problem
    each = len(labels) // clients if some else None
    options = {"alpha": alpha, "min_size": 1, "samples_per_client": each}
    parts = dirichlet(labels, clients, stream(seed, "partition"), **options)
    assert is_disjoint(parts, len(labels))
    assert sum(sizes_of(parts)) == (each * clients if some else len(labels))
    assert min(sizes_of(parts)) >= 1
    assert is_same(parts, dirichlet(labels, clients, stream(seed, "partition"), **options))


def test_a_small_alpha_separates_the_labels_and_a_large_one_mixes_them():
    labels = np.arange(10_000) % 10

    def purity(alpha):
        parts = dirichlet(labels, 10, stream(0, "partition"), alpha=alpha)
        counts = label_counts(labels, parts, 10)
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert purity(0.1) > 0.4
    assert purity(1000.0) < 0.15


def test_dirichlet_shares_have_the_stated_mean_and_spread():
    labels = np.zeros(1000, int)
    alpha = 2.0
    clients = 4
    draws = []
    for seed in range(2000):
        rng = stream(seed, "partition")
        draws.append(sizes_of(dirichlet(labels, clients, rng, alpha=alpha, min_size=1)))
    sizes = np.array(draws)
    variance = 0.25 * 0.75 / (clients * alpha + 1)  # of one share of a symmetric Dirichlet
    assert np.abs(sizes.mean(axis=0) / 1000 - 0.25).max() <= 5 * np.sqrt(variance / 2000)
    assert abs(sizes.var() / 1000**2 / variance - 1) <= 0.1


def test_dirichlet_gives_up_with_advice():
    with pytest.raises(
        ValueError,
        match=r"alpha=0.01 left some of 20 clients with fewer than min_size=5 of 400 samples "
        r".* raise alpha",
    ):
        dirichlet(np.arange(400) % 4, 20, stream(0, "partition"), alpha=0.01)
    with pytest.raises(ValueError, match="min_size must be a whole number between 1 and 4, got 10"):
        dirichlet(np.arange(400) % 4, 100, stream(0, "partition"), min_size=10)


@pytest.mark.parametrize("clients", [10, 50, 100, 300])
def test_as_many_clients_as_digits_has_samples_for_get_some_of_them(clients):
    labels = np.arange(1797) % 10
    parts = dirichlet(labels, clients, stream(0, "partition"))
    least = min(10, max(1, 1797 // clients // 4))
    assert min(sizes_of(parts)) >= least
