from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from exact import Rigged, chance_of_counts, members
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.selection import tree as tree_module
from fedcohort.selection.sampling import pivotal
from fedcohort.selection.tree import SumTree
from fedcohort.selection.tree_draw import draw_pivotal, draws_needed

ENDS = st.sampled_from([0.0, 2.0**-53, 0.5, 1 - 2.0**-53]) | st.floats(0, 0.999)


@pytest.fixture(autouse=True, params=["small layers", "large layers"])
def _few_blocks(request, monkeypatch):
    """Make trees of a few clients deep, and treat their layers as those of large federations."""
    monkeypatch.setattr(tree_module, "MOST_BLOCKS", 4)
    if request.param == "large layers":
        monkeypatch.setattr(tree_module, "SMALL_LAYER", 0)
        monkeypatch.setattr(tree_module, "DENSE", 0)


def probabilities(seed, num_clients, count):
    """Return probabilities below 0.9 that sum to a count of at most half the clients."""
    rng = np.random.default_rng(seed)
    p = rng.random(num_clients) ** 3 + 1e-3
    for _ in range(200):
        p = np.minimum(p * count / p.sum(), 0.9)
    return p * (count / p.sum())


def draw(p, uniforms, in_order=False):
    count = round(p.sum())
    tree = SumTree(p)
    draws = uniforms.random((draws_needed(tree, count, in_order),))
    return np.sort(draw_pivotal(tree, 1.0, 0.0, count, draws, in_order))


@pytest.mark.parametrize("num_clients", [1, 4, 5, 37, 64, 100])
def test_after_thousands_of_changes_the_sums_are_the_bits_of_a_new_tree(num_clients):
    rng = np.random.default_rng(num_clients)
    values = rng.normal(0, 1, num_clients) * 10.0 ** rng.integers(-9, 9, num_clients)
    tree = SumTree(values)
    for _ in range(3000):
        clients = rng.permutation(num_clients)[: rng.integers(1, num_clients + 1)]
        new = rng.normal(0, 1, clients.size) * (rng.random(clients.size) < 0.8)
        tree.replace(clients, new)
        values[clients] = new
    fresh = SumTree(values)
    assert tree.num_missing == fresh.num_missing == (values == 0).sum()
    for kept, built in zip(tree.sums, fresh.sums, strict=True):
        np.testing.assert_array_equal(kept, built)
    for kept, built in zip(tree.counts, fresh.counts, strict=True):
        np.testing.assert_array_equal(kept, built)


def halved(masses, place):
    """Return the client at a place, and the mass from its start, by halving the clients."""
    sums = [masses]
    while len(sums[-1]) > 1:
        below = np.array(sums[-1])
        sums.append((below[::2] + below[1::2]).tolist())
    client = 0
    for layer in sums[-2::-1]:
        client *= 2
        if place > layer[client]:
            place -= layer[client]
            client += 1
    return client, place


def test_a_descent_gives_the_bits_of_halving_by_hand():
    rng = np.random.default_rng(0)
    values = rng.random(256) * 10.0 ** rng.integers(-3, 3, 256)
    tree = SumTree(values)
    blocks = rng.integers(0, 4, 300)
    places = rng.random(300) * tree.block_masses(1.0, 0.0)[blocks]
    clients, rests, _ = tree.descend(blocks, places, 1.0, 0.0)
    for block, place, client, rest in zip(blocks, places, clients, rests, strict=True):
        own = values[64 * block : 64 * block + 64].tolist()
        assert (client - 64 * block, rest) == halved(own, place)


@given(
    values=st.lists(st.integers(0, 9), min_size=1, max_size=60),
    base=st.sampled_from([0, 1, 3]),
    data=st.data(),
)
def test_a_descent_finds_the_client_at_every_place(values, base, data):
    masses = [value + base if value else 0 for value in values]
    ends = list(accumulate(masses))
    tree = SumTree(np.array(values, dtype=float))
    blocks = tree.block_masses(1.0, float(base))
    assert blocks.sum() == ends[-1]
    if not ends[-1]:
        return
    place = Fraction(data.draw(st.integers(1, 8 * ends[-1])), 8)  # in eighths, which are exact
    client = next(i for i, end in enumerate(ends) if end >= place)
    block = client >> tree.depth
    inside = place - int(blocks[:block].sum())
    found, rest, mass = tree.descend(np.array([block]), np.array([float(inside)]), 1.0, float(base))
    assert found[0] == client
    assert mass[0] == masses[client]
    assert rest[0] == place - (ends[client] - masses[client])
    before = ends[client] - masses[client] - int(blocks[:block].sum())
    assert tree.mass_before(client, 1.0, float(base)) == before


@given(
    values=st.lists(st.integers(0, 20), min_size=1, max_size=60),
    limit=st.floats(0.5, 25),
    base=st.sampled_from([0.0, 2.0]),
)
def test_a_search_finds_everyone_above_a_limit(values, limit, base):
    tree = SumTree(np.array(values, dtype=float))
    expected = [i for i, value in enumerate(values) if value and value + base > limit]
    assert tree.above(limit, 1.0, base).tolist() == expected


def test_a_place_beyond_the_last_client_by_rounding_is_its_end():
    tree = SumTree(np.array([1.0] * 5 + [0.0] * 11))
    found, rest, mass = tree.descend(np.array([1]), np.array([1.0 + 1e-15]), 1.0, 0.0)
    assert (found[0], rest[0], mass[0]) == (4, 1.0, 1.0)


@given(seed=st.integers(0, 10**6), num_clients=st.integers(2, 90), share=st.floats(0.01, 0.5))
def test_in_order_of_the_ids_the_cohorts_are_those_of_the_pivotal_sampler(seed, num_clients, share):
    count = max(1, round(share * num_clients))
    p = probabilities(seed, num_clients, count)
    if p.max() > 1 - 1e-9:
        return
    expected = pivotal(p, np.random.default_rng(seed), count)
    found = draw(p, np.random.default_rng(seed), in_order=True)
    np.testing.assert_array_equal(found, expected)


@given(
    seed=st.integers(0, 10**6),
    num_clients=st.integers(2, 90),
    share=st.floats(0.01, 0.5),
    numbers=st.lists(ENDS, min_size=1, max_size=20),
    equal=st.booleans(),
    in_order=st.booleans(),
)
def test_whatever_chance_says_the_clients_are_distinct(
    seed, num_clients, share, numbers, equal, in_order
):
    count = max(1, round(share * num_clients))
    p = probabilities(seed, num_clients, count)
    if equal:
        p = np.full(num_clients, count / num_clients)
    clients = draw(p, Rigged(numbers), in_order)
    assert clients.size == count
    assert (np.diff(clients) > 0).all()
    assert clients[0] >= 0
    assert clients[-1] < num_clients


def test_shuffled_draws_hit_their_targets():
    p = probabilities(5, 45, 12)
    rng = np.random.default_rng(0)
    clients = np.stack([draw(p, rng) for _ in range(15_000)])
    assert chance_of_counts(clients, p) > 1e-4


def test_every_pair_can_meet():
    # Blocks of 16 equal clients hold exactly two strata of 8. Neighbours are the rarest pair: a
    # border lies between them in 1 of 8 starts, and then both are drawn in 1 of 64. So they meet
    # 11.7 times in 6,000 draws, and none of 64 such pairs is missing but with chance 5e-4.
    rng = np.random.default_rng(0)
    p = np.full(64, 8 / 64)
    inside = members(np.stack([draw(p, rng) for _ in range(6_000)]), 64).astype(int)
    assert (inside.T @ inside).min() > 0


def test_blocks_are_shuffled_so_that_strata_hold_other_clients_each_time():
    # Clients 15 and 16 lie in neighbouring blocks of 16. In order of the ids, 8 strata of 8
    # clients would part them as often as other neighbours. Shuffled, they meet like strangers.
    rng = np.random.default_rng(0)
    p = np.full(64, 8 / 64)
    inside = members(np.stack([draw(p, rng) for _ in range(6_000)]), 64)
    strangers = (inside[:, 15] & inside[:, 16]).sum()
    neighbours = (inside[:, 14] & inside[:, 15]).sum()
    assert strangers > 2 * neighbours
