from typing import ClassVar

import numpy as np
import pytest

from fedcohort.arrays import pick, place
from fedcohort.selection.availability import smallest
from fedcohort.selection.base import BaseSelector
from fedcohort.selection.protocol import Cohort, Outcome


class Counting(BaseSelector):
    """Asks the lowest ids and sums up the probabilities that `learn` is told."""

    client_arrays = ("sums",)
    in_flight = ("note",)

    def __init__(self, num_clients, cohort_size, *, rng):
        super().__init__(num_clients, cohort_size, rng=rng)
        self.sums = np.zeros(self.shape)

    def choose(self, round, size, present):
        self.note = np.array([round])
        clients = smallest(np.arange(self.num_clients), size, present)
        return clients, np.full(clients.shape, 0.5)

    def learn(self, outcome):
        clients = outcome.cohort.clients
        place(self.sums, clients, pick(self.sums, clients) + outcome.cohort.inclusion)


def test_a_scheme_declares_nothing_unless_it_says_so():
    assert not BaseSelector.needs_losses
    assert not BaseSelector.probes_losses
    assert not BaseSelector.has_inclusion
    assert BaseSelector(3, 1, rng=0).state_dict().keys() == {
        "kind",
        "num_clients",
        "cohort_size",
        "rng",
    }


def test_a_scheme_without_a_choice_or_probabilities_says_what_is_missing():
    selector = BaseSelector(3, 1, rng=0)
    with pytest.raises(NotImplementedError, match="BaseSelector must implement choose"):
        selector.select(0)
    with pytest.raises(NotImplementedError, match="BaseSelector cannot say its probabilities"):
        selector.inclusion(0)


def test_a_scheme_learns_from_the_probabilities_it_asked_with_and_not_from_those_it_is_told():
    selector = Counting(4, 2, rng=0)
    asked = selector.select(0)
    told = Cohort(0, asked.clients, np.ones(2))
    selector.update(Outcome(told, np.ones(2)))
    assert selector.sums.tolist() == [0.5, 0.5, 0.0, 0.0]


def test_clients_that_join_get_the_mean_of_the_others():
    selector = Counting(4, 2, rng=[0, 1])
    selector.sums = np.array([[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 0.0, 4.0]])
    selector.join(2)
    assert selector.sums[:, 4:].tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert selector.shape == (2, 6)


def test_clients_that_join_get_the_values_that_a_scheme_declares_by_name():
    class Declaring(Counting):
        client_arrays = ("sums", "asks")
        newcomer_values: ClassVar = {"asks": -1.0}

        def __init__(self, num_clients, cohort_size, *, rng):
            super().__init__(num_clients, cohort_size, rng=rng)
            self.asks = np.ones(self.shape)

    selector = Declaring(3, 1, rng=[0, 1])
    selector.sums = np.array([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    selector.join(2)
    assert selector.asks.tolist() == [[1, 1, 1, -1, -1]] * 2
    assert selector.sums.tolist() == [[1, 2, 3, 2, 2], [4, 4, 4, 4, 4]]


def test_what_is_in_flight_lives_from_select_to_update_and_in_states_between():
    selector = Counting(4, 2, rng=0)
    assert selector.note is None
    cohort = selector.select(7)
    state = selector.state_dict()
    assert state["asked"]["note"].tolist() == [7]
    selector.update(Outcome(cohort, np.ones(2)))
    assert selector.note is None
    selector.load_state_dict(state)
    assert selector.note.tolist() == [7]


def test_the_kind_of_a_state_is_the_name_of_the_class():
    assert Counting(4, 2, rng=0).state_dict()["kind"] == "Counting"


def test_a_scheme_that_needs_losses_refuses_an_outcome_without_them_and_keeps_its_cohort():
    class Lossy(Counting):
        needs_losses = True

    selector = Lossy(4, 2, rng=0)
    cohort = selector.select(0)
    with pytest.raises(ValueError, match=r"loss must be reported .*, got None"):
        selector.update(Outcome(cohort, np.ones(2)))
    selector.update(Outcome(cohort, np.ones(2), np.ones(2)))


def test_a_cohort_in_flight_is_forgotten_when_clients_join():
    selector = Counting(4, 2, rng=0)
    cohort = selector.select(0)
    selector.join(1)
    assert selector.note is None
    assert "asked" not in selector.state_dict()
    with pytest.raises(ValueError, match="select first"):
        selector.update(Outcome(cohort, np.ones(2)))
