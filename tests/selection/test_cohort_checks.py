"""What selectors return is checked, whoever wrote them."""

import numpy as np
import pytest

from fedcohort.rounds import play
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import NOBODY, Cohort
from fedcohort.selection.random import Random


class Given(BaseSelector):
    """Chooses what it is given, for each run the same."""

    clients = (0, 1)
    inclusion = (0.5, 0.5)
    factors = None

    def choose(self, round, size, present):
        clients = np.tile(self.clients, (*self.batch, 1))
        inclusion = np.tile(self.inclusion, (*self.batch, 1))
        return clients.reshape(*self.batch, -1), inclusion.reshape(*self.batch, -1)

    def weigh(self, clients):
        return self.factors


class Plain:
    """A selector that derives from nothing and asks a prescribed cohort."""

    num_clients = 4
    cohort_size = 2

    def __init__(self, cohort):
        self.cohort = cohort

    def select(self, round, available=None):
        return self.cohort

    def update(self, outcome):
        pass


def choose(rng=0, available=None, **values):
    selector = Given(4, 2, rng=rng)
    for name, value in values.items():
        setattr(selector, name, value)
    return selector.select(0, available)


@pytest.mark.parametrize("rng", [0, [0, 1, 2]])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"clients": (1, 4)}, "selector Given must choose clients from 0 to 3, got 4"),
        ({"clients": (1, 1)}, "selector Given must choose a cohort, got: clients must be distinct"),
        ({"clients": (0.0, 1.0)}, "selector Given must choose a cohort, got: clients must be an"),
        ({"clients": (1,), "inclusion": (1.0,)}, "selector Given must choose 2 clients, got 1"),
        (
            {"clients": (0, 1, 2), "inclusion": (1.0, 1.0, 1.0)},
            "selector Given must choose 2 clients, got 3",
        ),
        ({"inclusion": (0.5, 0.0)}, r"of selector Given must be above 0, got 0\.0 for client 1"),
        ({"inclusion": (0.5, np.nan)}, "selector Given .* inclusion must be between .*, got nan"),
        ({"inclusion": (1.0,)}, "selector Given .* inclusion must have shape"),
        ({"factors": -np.ones(2)}, "selector Given must weigh its cohort, got: weights must"),
        ({"available": [0, 2]}, "selector Given must choose clients that are available, got .* 1"),
    ],
)
def test_a_choice_that_cannot_be_asked_names_the_selector_the_bound_and_the_value(
    rng, values, message
):
    with pytest.raises(ValueError, match=message):
        choose(rng, **values)


def test_nobody_is_no_choice_of_a_selector():
    with pytest.raises(ValueError, match="selector Given must choose clients from 0 to 3, got -1"):
        choose([0, 1], clients=(1, NOBODY))


def test_a_choice_for_one_run_is_none_for_several():
    class Flat(Given):
        def choose(self, round, size, present):
            return np.arange(size), np.ones(size)

    with pytest.raises(ValueError, match=r"Flat must choose clients of shape \(3, 2\), got \(2,\)"):
        Flat(4, 2, rng=[0, 1, 2]).select(0)


def test_a_choice_without_probabilities_is_refused():
    class Nothing(Given):
        def choose(self, round, size, present):
            return None

    words = "selector Nothing must choose clients and their inclusion, got None"
    with pytest.raises(ValueError, match=words):
        Nothing(4, 2, rng=0).select(0)


def test_a_refused_choice_leaves_no_cohort_in_flight():
    selector = Given(4, 2, rng=0)
    selector.clients = (1, 9)
    with pytest.raises(ValueError, match="got 9"):
        selector.select(0)
    assert selector.asked is None


@pytest.mark.parametrize(
    ("cohort", "message"),
    [
        (None, "selector Plain must return a Cohort, got None"),
        (Cohort(3, [0, 1], [1.0, 1.0]), "selector Plain must return a cohort of round 0, got 3"),
        (Cohort(0, [0, 4], [1.0, 1.0]), "selector Plain must choose clients from 0 to 3, got 4"),
        (Cohort(0, [0, 1, 2], [1.0] * 3), "selector Plain must choose at most 2 clients, got 3"),
        (Cohort(0, [0, 1], [0.0, 1.0]), r"of selector Plain must be above 0, got 0\.0"),
        (Cohort(0, [0, 3], [1.0, 1.0]), "Plain must choose clients that are available, got .* 3"),
        (Cohort(0, [[0, 1]], [[1.0, 1.0]]), None),
    ],
)
def test_the_loop_checks_selectors_that_derive_from_nothing(cohort, message):
    online = [np.array([True, True, True, False])]
    rounds = play(Plain(cohort), [np.ones(4, dtype=bool)], 1, available=online)
    if message is None:
        assert next(rounds).cohort is cohort
        return
    with pytest.raises(ValueError, match=message):
        next(rounds)


def test_the_loop_and_a_lock_step_check_the_number_of_runs():
    flat = Plain(Cohort(0, [0, 1], [1.0, 1.0]))
    words = r"selector Plain must choose clients of shape \(3, 2\), got \(2,\)"
    with pytest.raises(ValueError, match=words):
        next(play(flat, [np.ones((3, 4), dtype=bool)], 1))
    with pytest.raises(ValueError, match=words):
        Lockstep([Random(4, 2, rng=[0]), flat], [1, 3]).select(0)


def test_a_base_selector_with_a_select_of_its_own_is_checked_by_the_loop():
    class Own(BaseSelector):
        def select(self, round, available=None):
            return Cohort(round, [7], [1.0])

    with pytest.raises(ValueError, match="selector Own must choose clients from 0 to 3, got 7"):
        next(play(Own(4, 2, rng=0), [np.ones(4, dtype=bool)], 1))


def test_rows_filled_with_nobody_pass_the_loop():
    selector = Lockstep([Random(4, 3, rng=[0]), Random(4, 1, rng=[1])], [1, 1])
    (record,) = play(selector, [np.ones((2, 4), dtype=bool)], 1)
    assert (record.cohort.clients == NOBODY).sum() == 2
