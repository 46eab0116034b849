from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.selection.protocol import Outcome
from fedcohort.selection.rbcs_f import RBCSF, sums_of_largest


def tell(selector, round, clients, seconds, success=None):
    """Play a round in which exactly these clients can be asked."""
    cohort = selector.select(round, clients)
    if success is None:
        success = np.ones(len(clients))
    selector.update(Outcome(cohort, success, seconds=seconds))


def with_state(times, debts, size, **more):
    """Return a selector whose optimistic times (for exploration 0) and debts are these."""
    selector = RBCSF(len(times), size, deadline=10.0, rng=0, exploration=0.0, **more)
    selector.asks = np.ones(len(times))
    selector.times = 2.0 * np.array(times)  # divided by 1 + n = 2
    selector.debts = np.array(debts, dtype=float)
    return selector


def test_a_cohort_worked_by_hand():
    # K = 4, k = 2, V = 1. Bound on the time -> two largest debts below it -> V max tau - sum z:
    #   0.2: {0, 1} -> 0.2 - 0.1;   0.5: {0, 1, 2}: 2 and 1 -> 0.5 - 0.5 = 0;
    #   0.9: {3, 2} -> 0.9 - 1.0 = -0.1.
    selector = with_state([0.1, 0.2, 0.5, 0.9], [0.0, 0.1, 0.4, 0.6], size=2, tradeoff=1.0)
    assert selector.select(0).clients.tolist() == [2, 3]
    # With V = 2: 0.4 - 0.1, 1.0 - 0.5 and 1.8 - 1.0; the quickest pair is best.
    selector = with_state([0.1, 0.2, 0.5, 0.9], [0.0, 0.1, 0.4, 0.6], size=2, tradeoff=2.0)
    assert selector.select(0).clients.tolist() == [0, 1]
    assert selector.select(0, [1, 2, 3]).clients.tolist() == [1, 2]


def test_times_and_debts_of_a_case_worked_by_hand():
    # beta = 0.75 * 2/3 = 0.5. Round 0: 0 and 1 answer after 2 s and 5 s; round 1: 1 and 2 are
    # asked, and 1 does not answer although the round closed after 4 s, which counts as 1.
    # Sums (0.2, 1.5, 0.4), n = (1, 2, 1). With alpha = 0.3:
    # tau = 0.2/2 - 0.3/sqrt 2 < 0, 1.5/3 - 0.3/sqrt 3 = 0.327, 0.4/2 - 0.3/sqrt 2 < 0.
    # Debts after round 0: (0, 0, 0.5); after round 1: (0.5, 0, 0).
    selector = RBCSF(3, 2, deadline=10.0, rng=0, quota=0.75, exploration=0.3)
    tell(selector, 0, [0, 1], [2.0, 5.0])
    tell(selector, 1, [1, 2], [4.0, 4.0], success=[0, 1])
    np.testing.assert_allclose(
        selector.optimistic_times(), [0, 0.5 - 0.3 / np.sqrt(3), 0], rtol=1e-12
    )
    np.testing.assert_allclose(selector.debts, [0.5, 0, 0], rtol=1e-12)


values = st.floats(0.0, 8.0).map(lambda value: round(8 * value) / 8)  # many ties, exact sums


@given(st.lists(st.tuples(values, values), min_size=1, max_size=8), st.data())
def test_no_other_cohort_is_better(clients, data):
    times, debts = (np.array(column) for column in zip(*clients, strict=True))
    size = data.draw(st.integers(1, len(times)))
    tradeoff = data.draw(st.sampled_from([0.0, 0.5, 1.0, 4.0]))
    chosen = with_state(times, debts, size, tradeoff=tradeoff).select(0).clients

    def cost(cohort):
        cohort = list(cohort)
        return tradeoff * times[cohort].max() - debts[cohort].sum()

    best = min(cost(cohort) for cohort in combinations(range(len(times)), size))
    assert cost(chosen) <= best + 1e-9


@given(st.lists(values, min_size=1, max_size=70), st.integers(1, 75))
def test_sums_of_the_largest_of_every_prefix(numbers, count):
    got = sums_of_largest(np.array(numbers), count)
    expected = [sum(sorted(numbers[: end + 1])[-count:]) for end in range(len(numbers))]
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_the_quickest_are_asked_more_often_and_all_get_their_rate():
    # Client i answers after i + 1 seconds. beta = 0.5 * 2/6 = 1/6.
    selector = RBCSF(6, 2, deadline=10.0, rng=0, tradeoff=8.0, exploration=0.1)
    asked = np.zeros(6)
    for round in range(600):
        cohort = selector.select(round)
        asked[cohort.clients] += 1
        selector.update(Outcome(cohort, [1, 1], seconds=cohort.clients + 1.0))
    assert asked[:2].min() > asked[2:].max()
    assert asked.min() >= 100 - 30  # debts of a few rounds stay open: V is 8


@pytest.mark.parametrize(
    ("argument", "value"),
    [("quota", 1.5), ("tradeoff", -1.0), ("exploration", -0.1), ("tradeoff", np.nan)],
)
def test_arguments_out_of_bounds_are_refused(argument, value):
    with pytest.raises(ValueError, match=rf"{argument} must be between 0.0 and .*, got {value}"):
        RBCSF(4, 2, deadline=10.0, rng=0, **{argument: value})
