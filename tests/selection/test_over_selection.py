import numpy as np
import pytest

from fedcohort.rounds import play
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.over_selection import OverSelection
from fedcohort.selection.random import Random


@pytest.mark.parametrize(
    ("needed", "factor", "asked"),
    [(20, 1.3, 26), (10, 1.3, 13), (10, 1.1, 11), (3, 1.3, 4), (50, 1.0, 50), (90, 1.3, 100)],
)
def test_it_asks_the_factor_times_what_it_needs_rounded_up(needed, factor, asked):
    # 1.1 * 10 is 11.000000000000002 in floating point, which must not ask a twelfth.
    selector = OverSelection(100, needed, rng=0, factor=factor)
    assert (selector.cohort_size, selector.enough) == (asked, needed)
    cohort = selector.select(0)
    assert cohort.clients.shape == (asked,)
    assert (cohort.inclusion == asked / 100).all()


def test_the_round_closes_with_the_answer_that_makes_it_enough():
    # All ten are asked, after 1 to 10 seconds; seven are enough (1.3 * 7 = 9.1).
    selector = OverSelection(10, 7, rng=0)
    seconds = np.arange(1.0, 11.0)
    (record,) = play(selector, [seconds], 1, deadline=60.0)
    assert record.arrived.tolist() == [True] * 7 + [False] * 3
    assert record.seconds == 7.0
    assert record.wasted == 21.0  # three clients worked for seven seconds


def test_too_few_answers_wait_for_the_deadline():
    selector = OverSelection(10, 7, rng=0)
    seconds = np.where(np.arange(10) < 6, 1.0, np.inf)
    (record,) = play(selector, [seconds], 1, deadline=60.0)
    assert record.arrived.sum() == 6
    assert record.seconds == 60.0


def test_it_plays_beside_selectors_that_ask_fewer():
    together = Lockstep([OverSelection(20, 10, rng=[0]), Random(20, 10, rng=[1, 2])], [1, 2])
    assert together.cohort_size == 13
    assert together.enough.tolist() == [10, 20, 20]
    (record,) = play(together, [np.tile(np.arange(1.0, 21.0), (3, 1))], 1, deadline=60.0)
    assert record.arrived.sum(axis=-1).tolist() == [10, 10, 10]
    assert record.cohort.is_asked.sum(axis=-1).tolist() == [13, 10, 10]


@pytest.mark.parametrize("factor", [0.9, np.nan, "x", 1e9])
def test_a_factor_out_of_bounds_is_refused(factor):
    with pytest.raises(ValueError, match=r"factor must be between 1.0 and 1000000.0, got"):
        OverSelection(10, 7, rng=0, factor=factor)
