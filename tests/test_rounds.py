from math import inf, nan

import numpy as np
import pytest

from fedcohort.rounds import Returned, play
from fedcohort.selection.f3ast import F3AST
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Cohort
from fedcohort.selection.random import Random
from fedcohort.selection.registry import Federation, make_selector


class Script:
    """A selector that asks prescribed cohorts and remembers the outcomes."""

    num_clients = 4
    cohort_size = 4

    def __init__(self, *cohorts):
        self.cohorts = cohorts
        self.rounds = []
        self.outcomes = []

    def select(self, round, available=None):
        self.rounds.append(round)
        clients = np.array(self.cohorts[round % len(self.cohorts)])
        return Cohort(round, clients, np.ones(clients.shape))

    def update(self, outcome):
        self.outcomes.append(outcome)


class Broken:
    """A learner that gets an invalid update from client 1."""

    def train(self, round, clients, arrived, weights):
        valid = arrived & (clients != 1)
        return Returned(valid, np.where(valid, 0.5 + clients, nan))


def play_round(selector, row, **options):
    """Play one round against one row of a world."""
    (record,) = play(selector, [np.array(row)], 1, **options)
    return record


def test_a_world_of_answers_takes_one_second_a_round_and_wastes_one_per_failure():
    selector = Script([1, 3])
    record = play_round(selector, [True, True, True, False])
    assert record.cohort.clients.tolist() == [1, 3]
    assert record.arrived.tolist() == record.valid.tolist() == [True, False]
    assert record.loss is None
    assert (float(record.seconds), float(record.wasted)) == (1.0, 1.0)
    assert selector.outcomes[0].success.tolist() == [1.0, 0.0]
    assert selector.outcomes[0].cohort.round == 0


def test_what_arrives_after_the_deadline_is_dropped_and_the_round_closes_at_the_deadline():
    record = play_round(Script([0, 2]), [3.0, 1.0, 5.5, 1.0], deadline=5.0)
    assert record.arrived.tolist() == [True, False]
    assert float(record.seconds) == 5.0
    assert float(record.wasted) == 5.0  # client 2 was stopped at the deadline


def test_an_answer_at_the_deadline_is_in_time():
    record = play_round(Script([0, 2]), [3.0, 1.0, 5.0, 1.0], deadline=5.0)
    assert record.arrived.all()
    assert (float(record.seconds), float(record.wasted)) == (5.0, 0.0)


def test_a_round_in_which_all_answer_closes_at_the_last_answer():
    record = play_round(Script([0, 2]), [3.0, 99.0, 2.5, 99.0], deadline=5.0)
    assert (float(record.seconds), float(record.wasted)) == (3.0, 0.0)


def test_a_client_that_never_answers_costs_the_whole_deadline():
    record = play_round(Script([0, 2]), [3.0, 1.0, inf, 1.0], deadline=7.0)
    assert (float(record.seconds), float(record.wasted)) == (7.0, 7.0)


def test_a_rejected_update_is_a_failure_that_wastes_its_time_and_does_not_hold_up_the_round():
    selector = Script([0, 1])
    record = play_round(selector, [3.0, 2.0, 1.0, 1.0], learner=Broken(), deadline=5.0)
    assert record.arrived.tolist() == [True, True]
    assert record.valid.tolist() == [True, False]
    assert (float(record.seconds), float(record.wasted)) == (3.0, 2.0)
    assert record.loss[0] == 0.5
    assert np.isnan(record.loss[1])
    assert selector.outcomes[0].success.tolist() == [1.0, 0.0]
    assert selector.outcomes[0].loss[0] == 0.5


def test_a_learner_is_told_only_who_is_asked_and_whose_answer_arrives():
    class Listening:
        heard: tuple

        def train(self, round, clients, arrived, weights):
            self.heard = (round, clients.tolist(), arrived.tolist())
            return Returned(arrived)

    learner = Listening()
    play_round(Script([1, 2]), [9.0, 1.0, 9.0, 1.0], learner=learner, deadline=4.0)
    assert learner.heard == (0, [1, 2], [True, False])


def test_runs_in_lock_step_each_have_their_own_time_and_waste():
    row = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, inf]]
    record = play_round(Script([[0, 1], [2, 3]]), row, deadline=3.5)
    assert record.arrived.tolist() == [[True, True], [True, False]]
    assert record.seconds.tolist() == [2.0, 3.5]
    assert record.wasted.tolist() == [0.0, 3.5]


def test_without_a_deadline_a_client_that_never_answers_is_an_error_that_names_the_deadline():
    with pytest.raises(ValueError, match=r"deadline must be finite .*, got inf"):
        play_round(Script([0, 2]), [3.0, 1.0, inf, 1.0])


def test_without_a_deadline_the_round_waits_for_the_last():
    record = play_round(Script([0, 2]), [300.0, inf, 2.0, inf])
    assert record.arrived.all()
    assert float(record.seconds) == 300.0


def test_no_more_rounds_are_played_than_asked_for_and_no_row_more_is_drawn():
    drawn = []

    def world():
        for round in range(10):
            drawn.append(round)
            yield np.ones(4, dtype=bool)

    assert len(list(play(Script([0, 1]), world(), 3))) == 3
    assert drawn == [0, 1, 2]


def test_a_world_that_ends_ends_the_play():
    assert len(list(play(Script([0, 1]), [np.ones(4, dtype=bool)] * 2, 5))) == 2


def test_a_later_start_skips_the_rows_before_it():
    rows = [np.array([seconds] * 4) for seconds in (1.0, 2.0, 3.0, 4.0)]
    selector = Script([0, 1], [2, 3])
    records = list(play(selector, rows, 4, deadline=9.0, start=2))
    assert [float(record.seconds) for record in records] == [3.0, 4.0]
    assert [record.cohort.round for record in records] == selector.rounds == [2, 3]
    assert list(play(selector, rows, 4, start=4)) == []


@pytest.mark.parametrize(
    ("row", "deadline", "message"),
    [
        (np.array([0, 1, 1, 0, 1, 1]), inf, r"world must say who answers \(bool\), .*, got int64"),
        (np.array([1.0, nan, 1.0, 1.0, 1.0, 1.0]), 2.0, "world must say who answers .*, got nan"),
        (
            np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0]),
            2.0,
            "world must say who answers .*, got nan or less than 0",
        ),
        ([True] * 5, inf, r"world must have a value for all 6 clients, got a row \(5,\)"),
        (np.ones(6), nan, "deadline must be above 0, got nan"),
        (np.ones(6), 0, "deadline must be above 0, got 0"),
        (
            np.ones(6, dtype=bool),
            0.5,
            "deadline must be at least 1 where the world only says who answers, .*, got 0.5",
        ),
    ],
)
def test_a_world_that_cannot_be_read_is_refused(row, deadline, message):
    selector = make_selector("random", Federation(6, 6, rng=0, horizon=1))
    with pytest.raises(ValueError, match=message):
        next(play(selector, [row], 1, deadline=deadline))


def test_a_world_may_yield_lists_and_have_clients_that_are_still_to_join():
    selector = make_selector("random", Federation(2, 2, rng=0, horizon=1))
    (record,) = play(selector, [[True, False, True]], 1)
    assert record.arrived.tolist() == [True, False]


class Measured:
    """A learner that returns norms and remembers the weights it was given."""

    def __init__(self):
        self.weights = []

    def train(self, round, clients, arrived, weights):
        self.weights.append(weights)
        return Returned(arrived, norm=np.where(arrived, 2.0 * clients, nan))


def test_the_selector_is_told_seconds_up_to_the_deadline_and_norms_of_what_arrived():
    selector = Script([0, 1, 3])
    play_round(selector, [3.0, inf, 0.0, 9.0], deadline=5.0, learner=Measured())
    outcome = selector.outcomes[0]
    assert outcome.seconds.tolist() == [3.0, 5.0, 5.0]
    assert outcome.norm.tolist()[0] == 0.0
    assert np.isnan(outcome.norm[1:]).all()


def test_a_round_closes_at_the_answer_that_makes_enough():
    selector = Script([0, 1, 2, 3])
    selector.enough = 2
    record = play_round(selector, [3.0, inf, 1.0, 4.0], deadline=5.0)
    assert record.arrived.tolist() == [True, False, True, False]
    assert float(record.seconds) == 3.0
    assert float(record.wasted) == 6.0  # both others were stopped after 3 seconds
    assert selector.outcomes[0].seconds.tolist() == [3.0, 3.0, 1.0, 3.0]


def test_answers_in_the_same_moment_as_the_last_one_needed_count():
    selector = Script([0, 1, 2])
    selector.enough = 1
    record = play_round(selector, [2.0, 2.0, 3.0, 0.0], deadline=5.0)
    assert record.arrived.tolist() == [True, True, False]


def test_too_few_answers_keep_the_round_open_until_the_deadline():
    selector = Script([0, 1, 2])
    selector.enough = 2
    record = play_round(selector, [2.0, inf, inf, 0.0], deadline=5.0)
    assert record.arrived.tolist() == [True, False, False]
    assert float(record.seconds) == 5.0


def test_the_learner_gets_the_inverse_of_the_inclusion_or_the_weights_of_the_cohort():
    class Weighted(Script):
        def select(self, round, available=None):
            weights = None if round == 0 else [7.0, 0.0]
            return Cohort(round, [1, 2], [0.25, 0.5], weights)

    learner = Measured()
    list(play(Weighted(), [np.ones(4, dtype=bool)] * 2, 2, learner))
    assert [weights.tolist() for weights in learner.weights] == [[4.0, 2.0], [7.0, 0.0]]


def test_clients_that_are_known_to_be_offline_are_not_asked():
    selector = make_selector("random", Federation(4, 2, rng=0))
    online = [np.array([True, False, False, True]), np.array([False, False, True, False])]
    world = [np.ones(4, dtype=bool)] * 2
    first, second = play(selector, world, 2, available=online)
    assert first.cohort.clients.tolist() == [0, 3]
    assert second.cohort.clients.tolist() == [2]


class Attendance:
    """A learner that remembers who was available in each round."""

    def __init__(self):
        self.available = []

    def train(self, round, clients, arrived, weights, available):
        self.available.append(available.tolist())
        return Returned(arrived)


def test_the_learner_is_told_who_was_available():
    learner = Attendance()
    online = [np.array([True, False, True]), np.array([True, True, False])]
    world = [np.ones(3, dtype=bool)] * 2
    list(play(Random(3, 1, rng=0), world, 2, learner, available=online))
    assert learner.available == [[True, False, True], [True, True, False]]


def test_where_the_weights_count_absence_everyone_stands_as_available():
    online = [np.array([[True, False], [True, False]])]
    world = [np.ones((2, 2), dtype=bool)]
    both = [Random(2, 1, rng=[0]), F3AST(2, 1, data_sizes=[1, 1], rng=[0])]
    learner = Attendance()
    list(play(Lockstep(both, [1, 1]), world, 1, learner, available=online))
    list(play(both[1], [world[0][:1]], 1, learner, available=[online[0][:1]]))
    assert learner.available == [[[True, False], [True, True]], [[True, True]]]


def test_a_round_in_which_nobody_is_online_passes_until_its_deadline():
    online = np.array([[[True, True]], [[False, False]], [[True, False]]])
    seconds = [np.array([[1.0, 2.0]])] * 3
    selector = Lockstep([Random(2, 2, rng=[0])], [1])
    records = list(play(selector, seconds, 3, deadline=5.0, available=online))
    assert [record.seconds.tolist() for record in records] == [[2.0], [5.0], [1.0]]
    assert [record.cohort.clients.shape for record in records] == [(1, 2), (1, 0), (1, 1)]
    assert [record.wasted.tolist() for record in records] == [[0.0]] * 3


def test_an_empty_round_of_one_run_passes_beside_the_others():
    online = [np.array([[True, True], [False, False]])]
    selector = Lockstep([Random(2, 2, rng=[0]), Random(2, 2, rng=[1])], [1, 1])
    (answers,) = play(selector, [np.ones((2, 2), dtype=bool)], 1, available=online)
    assert answers.seconds.tolist() == [1.0, 1.0]  # a world without seconds takes one
    (timed,) = play(selector, [np.full((2, 2), 0.5)], 1, deadline=3.0, available=online)
    assert timed.seconds.tolist() == [0.5, 3.0]
