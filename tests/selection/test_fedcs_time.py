import numpy as np
import pytest

from fedcohort.selection.fedcs_time import FedCSTime
from fedcohort.selection.protocol import Outcome


def tell(selector, round, clients, seconds, success=None):
    """Play a round in which exactly these clients can be asked."""
    cohort = selector.select(round, clients)
    if success is None:
        success = np.ones(len(clients))
    selector.update(Outcome(cohort, success, seconds=seconds))


def test_estimates_and_order_of_a_case_worked_by_hand():
    # K = 5, k = 2, deadline 10. Client 0: 4 s and 6 s, so 5. Client 1: 3 s, then no answer in
    # 10 s: 13 / 1 = 13, too late. Client 2: 8 s. Client 3: no answer. Client 4: unknown, 0.
    selector = FedCSTime(5, 2, deadline=10.0, rng=0, candidates=5)
    tell(selector, 0, [0, 1], [4.0, 3.0])
    tell(selector, 1, [0, 1], [6.0, 10.0], success=[1, 0])
    tell(selector, 2, [2, 3], [8.0, 10.0], success=[1, 0])
    assert selector.estimated_seconds().tolist() == [5.0, 13.0, 8.0, np.inf, 0.0]

    assert selector.select(3).clients.tolist() == [0, 4]
    assert selector.select(3, [0, 1, 2, 3]).clients.tolist() == [0, 2]
    # Only one of these is in time; the other place falls to 1 or 3 by lot.
    others = {int(selector.select(3, [1, 2, 3]).clients.sum()) - 2 for _ in range(50)}
    assert others == {1, 3}


def test_a_client_that_fails_now_and_then_stays_in_time():
    # Three answers after 5 s and one failure: (15 + 10) / 3 = 8.3 < 10.
    selector = FedCSTime(2, 1, deadline=10.0, rng=0)
    for round in range(3):
        tell(selector, round, [0], [5.0])
    tell(selector, 3, [0], [10.0], success=[0])
    np.testing.assert_allclose(selector.estimated_seconds(), [25 / 3, 0])


def test_inclusion_is_the_chance_of_being_a_candidate_and_the_class_declares_it():
    # All four are candidates, and the slowest two of them are never asked: chance has no part.
    selector = FedCSTime(4, 2, deadline=10.0, rng=0, candidates=4)
    for client in range(4):
        tell(selector, client, [client], [client + 1.0])
    cohort = selector.select(4)
    assert (cohort.clients.tolist(), cohort.inclusion.tolist()) == ([0, 1], [1.0, 1.0])

    # Two of four are candidates, and the quicker one is asked. Client 2 is a candidate with
    # chance 1/2, but asked only with client 3: 1/6.
    selector.candidates = 2
    selector.cohort_size = 1
    asked = []
    for _ in range(1200):
        cohort = selector.select(4)
        assert cohort.inclusion.tolist() == [0.5]
        asked.append(int(cohort.clients[0]))
    error = np.sqrt(1200 * 1 / 6 * 5 / 6)
    assert abs(asked.count(2) - 200) <= 5 * error
    assert FedCSTime.ranks_candidates


def test_only_candidates_are_asked_with_the_chance_of_being_one():
    selector = FedCSTime(10, 2, deadline=10.0, rng=0, candidates=4)
    for client in range(10):
        tell(selector, 0, [client], [client + 0.5])
    first = np.array([selector.select(1).clients for _ in range(400)])
    assert (selector.select(1).inclusion == 0.4).all()
    # The quickest client is asked whenever it is a candidate: 400 * 0.4, five standard errors.
    asked = (first == 0).any(axis=-1).sum()
    assert abs(asked - 160) <= 5 * np.sqrt(400 * 0.4 * 0.6)
    # Client 8 is asked only if the others drawn are slower, and only client 9 is.
    assert not (first == 8).any()


def test_candidates_grow_with_the_federation_up_to_what_is_usual():
    selector = FedCSTime(4, 3, deadline=10.0, rng=0)
    assert (selector.select(0).inclusion == 1).all()
    selector.join(16)
    assert (selector.select(1).inclusion == 8 / 20).all()


def test_a_selector_that_clients_joined_goes_on_from_its_state_in_a_new_one():
    joined = FedCSTime(4, 3, deadline=10.0, rng=0)
    joined.join(16)
    resumed = FedCSTime(20, 3, deadline=10.0, rng=0)
    resumed.load_state_dict(joined.state_dict())
    for round in range(5):
        asked = joined.select(round)
        again = resumed.select(round)
        assert (asked.clients == again.clients).all()
        assert (asked.inclusion == again.inclusion).all()


@pytest.mark.parametrize("candidates", [1, 11, 2.5])
def test_an_impossible_number_of_candidates_is_refused(candidates):
    with pytest.raises(ValueError, match=r"candidates must be a whole number between 2 and 10"):
        FedCSTime(10, 2, deadline=10.0, rng=0, candidates=candidates)
