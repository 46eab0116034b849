import numpy as np
import pytest

from fedcohort.selection.protocol import Outcome
from fedcohort.selection.refl import REFL


def tell(selector, round, available, success=1):
    cohort = selector.select(round, available)
    selector.update(Outcome(cohort, np.full(cohort.clients.shape, success)))
    return cohort


def test_the_least_available_go_first_in_a_case_worked_by_hand():
    # Three rounds with known availability: client 0 is there in all, 1 in two, 2 in one, 3 in
    # none: (3 + 1) / 5, 3/5, 2/5, 1/5. Who was asked and who answered does not count then.
    selector = REFL(4, 2, rng=0)
    tell(selector, 0, [0, 1, 2])
    tell(selector, 1, [0, 1], success=0)
    tell(selector, 2, [0])
    assert selector.availability().tolist() == [0.8, 0.6, 0.4, 0.2]
    assert selector.select(3).clients.tolist() == [2, 3]
    assert selector.select(3, [0, 1, 2]).clients.tolist() == [1, 2]


def test_a_round_with_nobody_there_counts_for_everyone():
    # Nobody is there in three of four rounds, client 0 in the fourth: 2/6 and 1/6.
    selector = REFL(2, 1, rng=0)
    for round in range(3):
        tell(selector, round, [])
    tell(selector, 3, [0])
    assert selector.trials.tolist() == [4.0, 4.0]
    assert selector.availability().tolist() == [2 / 6, 1 / 6]


def test_without_masks_the_answers_of_those_asked_count():
    # K = k = 2: both are asked three times, client 0 answers each time, 1 never: 4/5 and 1/5.
    selector = REFL(2, 2, rng=0)
    for round in range(3):
        cohort = selector.select(round)
        selector.update(Outcome(cohort, [1, 0]))
    assert selector.availability().tolist() == [0.8, 0.2]


def test_clients_that_nothing_is_known_of_stand_in_the_middle():
    selector = REFL(4, 1, rng=0)
    assert selector.availability().tolist() == [0.5] * 4
    tell(selector, 0, [0])
    assert selector.availability()[0] > 0.5 > selector.availability()[1]


def test_a_mask_in_flight_that_does_not_fit_is_refused():
    selector = REFL(4, 2, rng=0)
    selector.select(0, [0, 1, 2])
    state = selector.state_dict()
    state["asked"]["present"] = np.zeros(4, dtype=bool)
    with pytest.raises(ValueError, match="present in the state must hold the clients asked"):
        REFL(4, 2, rng=0).load_state_dict(state)
