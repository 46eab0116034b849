import numpy as np
import pytest

from fedcohort.selection.clustered import ClusteredSampling


def draws(selector, count=3000):
    return np.array([selector.select(0).clients for _ in range(count)])


def pairs(cohorts):
    """Return how often each two clients were asked together, by their ids."""
    ids, counts = np.unique(cohorts, axis=0, return_counts=True)
    return {tuple(pair): count for pair, count in zip(ids.tolist(), counts, strict=True)}


def test_bins_of_a_case_worked_by_hand():
    # Sizes (3, 1, 2, 2), k = 2: each of two bins holds 8 of the 16 tokens, 2 per sample. Largest
    # first: client 0 (6 tokens) and a half of client 2 (2) fill the first bin; the rest of 2 (2),
    # client 3 (4) and client 1 (2) the second. So p = (6, 2, 4, 4) / 8, and 1 and 3, which lie in
    # the second bin alone, are never asked together. Nor is client 2 asked twice.
    selector = ClusteredSampling(4, 2, data_sizes=[3, 1, 2, 2], rng=0)
    np.testing.assert_allclose(selector.inclusion(0), [0.75, 0.25, 0.5, 0.5], rtol=1e-12)

    # Client 0 takes the first bin (3/4) or client 2 does (1/4). If 2 did, the second bin falls
    # to 3 and 1 in proportion 4 : 2. In all: {2,3} 1/6, {1,2} 1/12, and p leaves {0,2} 1/4,
    # {0,3} 1/3, {0,1} 1/6.
    expected = {(0, 1): 1 / 6, (0, 2): 1 / 4, (0, 3): 1 / 3, (1, 2): 1 / 12, (2, 3): 1 / 6}
    found = pairs(draws(selector))
    assert found.keys() == expected.keys()
    for pair, chance in expected.items():  # five standard errors
        assert abs(found[pair] - 3000 * chance) <= 5 * np.sqrt(3000 * chance * (1 - chance))


def test_bins_that_no_client_straddles_give_one_client_each():
    # Equal sizes: the bins are {0, 1, 2} and {3, 4, 5}.
    cohorts = draws(ClusteredSampling(6, 2, data_sizes=np.full(6, 7), rng=0), 500)
    assert (cohorts[:, 0] <= 2).all()
    assert (cohorts[:, 1] >= 3).all()
    assert len(pairs(cohorts)) == 9


def test_a_client_larger_than_a_bin_is_asked_for_certain():
    # 2 * 90/120 > 1: client 1 is certain, and the others share one bin.
    selector = ClusteredSampling(4, 2, data_sizes=[10, 90, 10, 10], rng=0)
    np.testing.assert_allclose(selector.inclusion(0), [1 / 3, 1, 1 / 3, 1 / 3], rtol=1e-12)
    assert (draws(selector, 200) == 1).any(axis=-1).all()


def test_the_bins_are_those_of_the_clients_that_are_there():
    selector = ClusteredSampling(4, 1, data_sizes=[3, 1, 2, 2], rng=0)
    np.testing.assert_allclose(selector.inclusion(0, [0, 1]), [0.75, 0.25, 0, 0], rtol=1e-12)


@pytest.mark.parametrize("rng", [4, [4, 5]])
def test_bins_that_are_kept_give_the_cohorts_of_bins_made_anew(rng):
    sizes = np.random.default_rng(0).integers(1, 100, 30)
    kept = ClusteredSampling(30, 6, data_sizes=sizes, rng=rng)
    anew = ClusteredSampling(30, 6, data_sizes=sizes, rng=rng)
    for round in range(20):
        available = None
        if round % 4 == 3:
            available = np.arange(round, kept.num_clients)
        if round == 10:
            kept.join(2)
            anew.join(2)
        anew.data_sizes = anew.data_sizes.copy()
        one = kept.select(round, available)
        other = anew.select(round, available)
        np.testing.assert_array_equal(one.clients, other.clients)
        np.testing.assert_array_equal(one.inclusion, other.inclusion)


def test_other_data_make_other_bins():
    selector = ClusteredSampling(4, 1, data_sizes=[1, 1, 1, 10**9], rng=0)
    assert selector.select(0).clients.tolist() == [3]
    selector.data_sizes = np.array([10.0**9, 1, 1, 1])
    assert selector.select(1).clients.tolist() == [0]
