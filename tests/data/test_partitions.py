"""What holds for every partition."""

import numpy as np
import pytest
from hypothesis import given
from problems import is_disjoint, is_same, sized, sizes_of

from fedcohort.data import PARTITIONS
from fedcohort.rng import stream


@pytest.mark.parametrize("name", ["iid", "primary-label", "shards"])
@given(problem=sized())
def test_parts_are_disjoint_of_the_wanted_sizes_and_the_same_for_a_seed(name, problem):
    labels, clients, seed, wish = problem
    options = {"shards_per_client": 1} if name == "shards" else {}
    options["samples_per_client"] = wish
    parts = PARTITIONS[name](labels, clients, stream(seed, "partition"), **options)
    assert is_disjoint(parts, len(labels))
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in parts)
    if wish is None:
        assert sum(sizes_of(parts)) == len(labels)
        assert max(sizes_of(parts)) - min(sizes_of(parts)) <= 1
    elif isinstance(wish, list):
        assert sizes_of(parts) == wish
    else:
        assert sizes_of(parts) == [wish] * clients
    again = PARTITIONS[name](labels, clients, stream(seed, "partition"), **options)
    assert is_same(parts, again)


@pytest.mark.parametrize("name", ["iid", "primary-label", "dirichlet", "shards"])
def test_another_seed_gives_another_partition(name):
    labels = np.arange(400) % 10
    first = PARTITIONS[name](labels, 5, stream(0, "partition"))
    second = PARTITIONS[name](labels, 5, stream(1, "partition"))
    assert not is_same(first, second)


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


@pytest.mark.parametrize("name", ["iid", "primary-label", "dirichlet", "shards"])
def test_samples_of_a_label_are_dealt_in_random_order(name):
    # All samples bear one label. Dealt in the order of the file, neighbours would nearly always
    # share an owner; at random a pair does with the chance sum n (n - 1) / (N (N - 1)).
    count = 4000
    parts = PARTITIONS[name](np.zeros(count, int), 5, stream(0, "partition"))
    owners = np.empty(count, int)
    for client, samples in enumerate(parts):
        owners[samples] = client
    sizes = np.array(sizes_of(parts))
    chance = (sizes * (sizes - 1)).sum() / (count * (count - 1))
    share = (owners[1:] == owners[:-1]).mean()
    assert abs(share - chance) <= 5 * np.sqrt(chance * (1 - chance) / (count - 1))


@pytest.mark.parametrize("name", ["iid", "primary-label", "dirichlet", "shards"])
def test_samples_that_are_left_over_are_left_over_at_random(name):
    count = 4000
    parts = PARTITIONS[name](
        np.zeros(count, int), 5, stream(0, "partition"), samples_per_client=400
    )
    dealt = np.concatenate(parts)
    in_first_half = (dealt < count // 2).sum()  # hypergeometric: 2000 of 4000 are dealt
    assert abs(in_first_half - 1000) <= 5 * np.sqrt(2000 * 0.25 * 0.5)
