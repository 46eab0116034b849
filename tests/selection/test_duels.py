import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.selection.duels import takes_left

STRATUM = st.tuples(st.booleans(), st.floats(0, 1), st.floats(0, 1.2), st.floats(0, 0.999))


def duel_one_by_one(meets, head, tail, draws):
    """Return where the client astride the left border is drawn, stratum after stratum."""
    is_left = [False]
    for border in range(len(meets)):
        drawn_before = meets[border] and not is_left[border]
        chance = head[border] / (1 - tail[border]) if tail[border] < 1 else 0.0
        is_left.append(bool(not drawn_before and draws[border] < chance))
    return is_left


@given(strata=st.lists(STRATUM, max_size=40))
def test_duels_at_once_are_the_duels_one_by_one(strata):
    columns = np.array(strata, dtype=float).reshape(-1, 4).T
    meets = columns[0] > 0
    head, tail, draws = columns[1:]
    assert takes_left(meets, head, tail, draws).tolist() == duel_one_by_one(
        meets.tolist(), head.tolist(), tail.tolist(), draws.tolist()
    )


def test_a_long_chain_of_strata_that_depend_on_each_other():
    # Every place falls on the client astride the next border, and everyone wants the left. So
    # whether the left is taken alternates, until a stratum does not want it.
    count = 9
    draws = np.full(count, 0.1)
    draws[5] = 0.9
    found = takes_left(np.ones(count, dtype=bool), np.full(count, 0.5), np.zeros(count), draws)
    taken = duel_one_by_one([True] * count, [0.5] * count, [0.0] * count, draws.tolist())
    assert found.tolist() == taken
