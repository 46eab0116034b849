"""What a round from a tree costs, counted in array elements and bytes, not in seconds."""

import tracemalloc
from math import log2

import numpy as np
import pytest

from fedcohort.selection.clustered import ClusteredSampling
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.protocol import Outcome
from fedcohort.selection.tree import MOST_BLOCKS

COHORT = 100


class Counted(np.ndarray):
    """An array that counts how many of its elements are read and written."""

    touched = 0

    def take(self, indices, *args, **named):
        Counted.touched += np.size(indices)
        return self.view(np.ndarray).take(indices, *args, **named)

    def __getitem__(self, key):
        found = self.view(np.ndarray)[key]
        if isinstance(found, np.ndarray) and found.base is not None:
            return found.view(Counted)  # a view: nothing is read yet
        Counted.touched += np.size(found)
        return found

    def __setitem__(self, key, value):
        Counted.touched += np.size(self.view(np.ndarray)[key])
        self.view(np.ndarray)[key] = value

    def copy(self, order="C"):
        Counted.touched += self.size
        return self.view(np.ndarray).copy(order)

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        Counted.touched += max(np.size(part) for part in inputs)
        if "out" in named:
            named["out"] = tuple(map(plain, named["out"]))
        return getattr(ufunc, method)(*map(plain, inputs), **named)

    def __array_function__(self, function, types, args, named):
        if function is np.searchsorted:
            Counted.touched += np.size(args[1]) * int(self.size).bit_length()  # by halving
        else:
            Counted.touched += self.size
        return function(*map(plain, args), **named)


def plain(value):
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def count_arrays(holder, seen):
    """Replace every array that an object holds, however deep, by one that counts."""
    if id(holder) in seen or not hasattr(holder, "__dict__"):
        return
    seen.add(id(holder))
    for name, value in list(vars(holder).items()):
        if isinstance(value, Counted):
            continue
        if isinstance(value, np.ndarray):
            object.__setattr__(holder, name, value.view(Counted))  # a frozen holder too
        elif isinstance(value, list):
            for index, part in enumerate(value):
                if isinstance(part, np.ndarray):
                    value[index] = part.view(Counted)
                else:
                    count_arrays(part, seen)
        else:
            count_arrays(value, seen)


def play(selector, rounds):
    for round in rounds:
        cohort = selector.select(round)
        selector.update(Outcome(cohort, cohort.clients % 3 > 0))


def elements_per_round(num_clients, update, quota):
    """Return how many elements of the selector's arrays one round touches, the first excluded."""
    selector = E3CS(num_clients, COHORT, rng=0, update=update, quota=quota, algorithm="tree")
    noise = np.random.default_rng(0).normal(0, 1, num_clients)
    selector.log_weights = selector.log_weights + noise
    play(selector, range(2))
    count_arrays(selector._store, set())
    Counted.touched = 0
    play(selector, range(2, 7))
    return Counted.touched / 5


def test_the_count_would_notice_a_pass_over_everyone():
    selector = E3CS(50_000, COHORT, rng=0, algorithm="scan")
    play(selector, range(2))
    count_arrays(selector._store, set())
    Counted.touched = 0
    play(selector, range(2, 3))
    assert Counted.touched >= 50_000


@pytest.mark.parametrize("quota", [0.0, 0.5])
@pytest.mark.parametrize("update", ["paper", "robust"])
def test_a_round_touches_no_more_elements_in_a_larger_federation(update, quota):
    few = elements_per_round(20_000, update, quota)
    many = elements_per_round(640_000, update, quota)
    # A path of log2 K layers for each client asked, and the sums of the blocks.
    assert few > COHORT
    assert many <= 12 * COHORT * log2(640_000) + 8 * MOST_BLOCKS
    assert many - few <= 12 * COHORT * log2(640_000 / 20_000) + 4 * MOST_BLOCKS


def count_rounds_of_clustered(num_clients):
    """Return how many elements of the selector's arrays each of three rounds touches."""
    sizes = np.random.default_rng(0).integers(1, 500, num_clients)
    selector = ClusteredSampling(num_clients, COHORT, data_sizes=sizes, rng=0)
    count_arrays(selector, set())
    touched = []
    for round in range(3):
        Counted.touched = 0
        play(selector, [round])
        count_arrays(selector, set())
        touched.append(Counted.touched)
    return touched


def test_clustered_passes_over_everyone_in_the_first_round_alone():
    for num_clients in (20_000, 640_000):
        first, _, later = count_rounds_of_clustered(num_clients)
        assert first >= num_clients
        assert COHORT <= later <= 12 * COHORT * log2(num_clients)


@pytest.mark.parametrize("update", ["paper", "robust"])
def test_a_client_takes_at_most_forty_bytes(update):
    num_clients = 300_000
    tracemalloc.start()
    selector = E3CS(num_clients, COHORT, rng=0, update=update)
    play(selector, range(3))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 8 < held / num_clients <= 40
