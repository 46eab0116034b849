"""The search for the replies that a strategy cannot aggregate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.flower.subsets import MOST_TRIES, find_working_subset


def search(count, works, most_tries=MOST_TRIES):
    """Return the subset found and how often it was tried."""
    tries = []

    def watched(subset):
        assert subset == sorted(set(subset))
        tries.append(tuple(subset))
        return works(subset)

    found = find_working_subset(count, watched, most_tries)
    assert len(tries) == len(set(tries)) <= most_tries
    return found


@given(st.integers(1, 12), st.sets(st.integers(0, 11), min_size=1, max_size=3))
def test_elements_that_never_work_are_left_out_and_no_others(count, bad):
    bad = {element for element in bad if element < count} or {0}
    expected = [element for element in range(count) if element not in bad]
    assert search(count, lambda subset: not bad & set(subset), most_tries=60) == expected


@pytest.mark.parametrize("bad", [0, 500, 999])
def test_one_of_a_thousand_is_found_in_few_tries(bad):
    found = search(1000, lambda subset: bad not in subset)
    assert found == [element for element in range(1000) if element != bad]


@pytest.mark.parametrize("odd", [{0}, {0, 1}, {3, 4}])
def test_of_two_groups_that_do_not_mix_the_larger_is_kept(odd):
    def is_pure(subset):
        return set(subset) <= odd or not odd & set(subset)

    assert search(7, is_pure) == [element for element in range(7) if element not in odd]


def test_if_nothing_works_the_search_ends():
    assert search(1, lambda subset: False) == []
    assert search(40, lambda subset: False) == []


def test_a_strategy_that_needs_many_replies_loses_one():
    """As Krum does, which needs a minimum number."""
    found = search(6, lambda subset: len(subset) >= 5 and 2 not in subset)
    assert found == [0, 1, 3, 4, 5]
