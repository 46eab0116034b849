from itertools import islice
from math import inf, nan

import numpy as np
import pytest

from fedcohort.rounds import Returned, play
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Cohort, Outcome
from fedcohort.selection.registry import SELECTORS, Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.durations import timed


class Script:
    """A selector that asks whom it is told to ask, and remembers what it was told."""

    num_clients, cohort_size = 4, 2

    def __init__(self, *cohorts):
        self.cohorts, self.rounds, self.told = cohorts, [], []

    def select(self, round, available=None):
        self.rounds.append(round)
        clients = np.array(self.cohorts[round % len(self.cohorts)])
        return Cohort(round, clients, np.ones(clients.shape))

    def update(self, outcome):
        self.told.append(outcome)


class Broken:
    """A learner to whom client 1 returns rubbish."""

    def train(self, round, clients, arrived):
        valid = arrived & (clients != 1)
        return Returned(valid, np.where(valid, 0.5 + clients, nan))


def one(selector, row, **options):
    (record,) = play(selector, [np.array(row)], 1, **options)
    return record


def test_a_world_of_answers_takes_one_second_a_round_and_wastes_one_per_failure():
    selector = Script([1, 3])
    record = one(selector, [True, True, True, False])
    assert record.cohort.clients.tolist() == [1, 3]
    assert record.arrived.tolist() == record.valid.tolist() == [True, False]
    assert record.loss is None
    assert (float(record.seconds), float(record.wasted)) == (1.0, 1.0)
    assert selector.told[0].success.tolist() == [1.0, 0.0]
    assert selector.told[0].cohort.round == 0


def test_what_arrives_after_the_deadline_is_dropped_and_the_round_closes_at_the_deadline():
    record = one(Script([0, 2]), [3.0, 1.0, 5.5, 1.0], deadline=5.0)
    assert record.arrived.tolist() == [True, False]
    assert float(record.seconds) == 5.0
    assert float(record.wasted) == 5.0  # client 2 was stopped at the deadline


def test_an_answer_at_the_deadline_is_in_time():
    record = one(Script([0, 2]), [3.0, 1.0, 5.0, 1.0], deadline=5.0)
    assert record.arrived.all()
    assert (float(record.seconds), float(record.wasted)) == (5.0, 0.0)


def test_a_round_in_which_all_answer_closes_at_the_last_answer():
    record = one(Script([0, 2]), [3.0, 99.0, 2.5, 99.0], deadline=5.0)
    assert (float(record.seconds), float(record.wasted)) == (3.0, 0.0)


def test_a_client_that_never_answers_costs_the_whole_deadline():
    record = one(Script([0, 2]), [3.0, 1.0, inf, 1.0], deadline=7.0)
    assert (float(record.seconds), float(record.wasted)) == (7.0, 7.0)


def test_a_rejected_update_is_a_failure_that_wastes_the_time_it_took_and_does_not_hold_up_the_round():
    selector = Script([0, 1])
    record = one(selector, [3.0, 2.0, 1.0, 1.0], learner=Broken(), deadline=5.0)
    assert record.arrived.tolist() == [True, True]
    assert record.valid.tolist() == [True, False]
    assert (float(record.seconds), float(record.wasted)) == (3.0, 2.0)
    assert record.loss[0] == 0.5
    assert np.isnan(record.loss[1])
    assert selector.told[0].success.tolist() == [1.0, 0.0]
    assert selector.told[0].loss[0] == 0.5


def test_a_learner_is_told_only_who_is_asked_and_whose_answer_arrives():
    class Listening:
        heard: tuple

        def train(self, round, clients, arrived):
            self.heard = (round, clients.tolist(), arrived.tolist())
            return Returned(arrived)

    learner = Listening()
    one(Script([1, 2]), [9.0, 1.0, 9.0, 1.0], learner=learner, deadline=4.0)
    assert learner.heard == (0, [1, 2], [True, False])


def test_runs_in_lock_step_each_have_their_own_time_and_waste():
    row = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, inf]]
    record = one(Script([[0, 1], [2, 3]]), row, deadline=3.5)
    assert record.arrived.tolist() == [[True, True], [True, False]]
    assert record.seconds.tolist() == [2.0, 3.5]
    assert record.wasted.tolist() == [0.0, 3.5]


def test_without_a_deadline_a_client_that_never_answers_is_an_error_that_names_the_deadline():
    with pytest.raises(ValueError, match=r"deadline must be finite .*, got inf"):
        one(Script([0, 2]), [3.0, 1.0, inf, 1.0])


def test_without_a_deadline_the_round_waits_for_the_last():
    record = one(Script([0, 2]), [300.0, inf, 2.0, inf])
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


class Losses:
    """A learner that reports a loss of its own for every client and round, and loses client 3's update."""

    def train(self, round, clients, arrived):
        valid = arrived & (clients != 3)
        return Returned(valid, np.where(valid, 1 + np.sin(7.0 * clients + round), nan))


def federation(seeds):
    return Federation(
        12,
        4,
        seeds,
        20,
        class_rates(12),
        loss_of=lambda clients: np.cos(5.0 * clients),
        eta=0.5,
        sampler="systematic",
    )


def played(selector, seeds):
    records = list(play(selector, bernoulli(class_rates(12), seeds), 20, Losses()))
    return {
        name: np.stack([getattr(r, name) for r in records])
        for name in ("arrived", "valid", "seconds", "wasted")
    } | {
        "clients": np.stack([r.cohort.clients for r in records]),
        "inclusion": np.stack([r.cohort.inclusion for r in records]),
    }


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize(
    "pair", [("e3cs-0.5", "random"), ("rpow-d", "e3cs-inc"), ("fedcs", "pow-d")], ids="+".join
)
def test_selectors_in_lock_step_do_what_each_does_alone(pair):
    seeds = ([3, 4], [5])
    made = [
        make_selector(name, federation(list(own))) for name, own in zip(pair, seeds, strict=True)
    ]
    beside = played(Lockstep(made, [2, 1]), [3, 4, 5])
    rows = (slice(0, 2), slice(2, 3))
    for name, own, selector, row in zip(pair, seeds, made, rows, strict=True):
        alone = make_selector(name, federation(list(own)))
        assert same(
            played(alone, list(own)), {key: values[:, row] for key, values in beside.items()}
        )
        assert same(alone.state_dict(), selector.state_dict())


def lockstep(names=("e3cs-0.5", "rpow-d"), runs=(2, 1)):
    seeds = iter(range(3, 99))
    return Lockstep(
        [
            make_selector(name, federation(list(islice(seeds, n))))
            for name, n in zip(names, runs, strict=True)
        ],
        list(runs),
    )


def test_a_restored_lock_step_goes_on_exactly_and_skips_the_rounds_it_has_seen():
    whole, half, rest = lockstep(), lockstep(), lockstep()
    world = lambda: bernoulli(class_rates(12), [3, 4, 5])  # noqa: E731
    expected = [record.cohort.clients for record in play(whole, world(), 20, Losses())]
    first = [record.cohort.clients for record in play(half, world(), 8, Losses())]
    rest.load_state_dict(half.state_dict())
    second = [record.cohort.clients for record in play(rest, world(), 20, Losses(), start=8)]
    assert np.array_equal(np.stack(expected), np.stack(first + second))
    assert same(whole.state_dict(), rest.state_dict())


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


def test_a_lock_step_with_a_cohort_in_flight_can_be_put_back():
    def made():
        return Lockstep(
            [
                make_selector(name, Federation(6, 2, rng=[0, 1], horizon=9))
                for name in ("e3cs-0.5", "random")
            ],
            [2, 2],
        )

    one, other = made(), made()
    cohort = one.select(0)
    other.load_state_dict(one.state_dict())
    for lockstep in (one, other):
        lockstep.update(Outcome(cohort, np.ones((4, 2))))
    np.testing.assert_array_equal(one.select(1).clients, other.select(1).clients)


def test_a_state_that_is_refused_changes_no_selector():
    lockstep = Lockstep(
        [make_selector("e3cs-0", Federation(6, 2, rng=[seed], horizon=9)) for seed in (0, 1)],
        [1, 1],
    )
    lockstep.select(0)
    before, state = lockstep.state_dict(), lockstep.state_dict()
    state["0"]["log_weights"] = state["0"]["log_weights"] + 1
    state["1"]["num_clients"] = 7
    with pytest.raises(ValueError, match="num_clients of the state must be 6, got 7"):
        lockstep.load_state_dict(state)
    np.testing.assert_array_equal(
        lockstep.state_dict()["0"]["log_weights"], before["0"]["log_weights"]
    )
    assert "asked" in lockstep.state_dict()["1"]


def test_a_state_of_another_number_of_selectors_is_refused():
    with pytest.raises(ValueError, match="must hold 2 selectors, got 1"):
        lockstep().load_state_dict(lockstep(("e3cs-0.5",), (2,)).state_dict())


def test_an_answer_without_a_question_is_refused():
    selector = lockstep()
    cohort = selector.select(0)
    outcome = Outcome(cohort, np.ones((3, 4)), np.ones((3, 4)))
    selector.update(outcome)
    with pytest.raises(ValueError, match="select first"):
        selector.update(outcome)


def test_an_answer_to_another_round_is_refused_as_by_every_selector():
    selector = lockstep()
    old = selector.select(0)
    selector.select(1)
    with pytest.raises(ValueError, match="round"):
        selector.update(Outcome(old, np.ones((3, 4)), np.ones((3, 4))))


@pytest.mark.parametrize(
    "available",
    [np.arange(12) % 2 == 0, np.arange(0, 12, 2), np.tile(np.arange(12) % 2 == 0, (3, 1))],
    ids=["mask of clients", "client ids", "mask of every run"],
)
def test_only_those_available_are_asked_in_every_form_a_selector_takes(available):
    assert (lockstep().select(0, available).clients % 2 == 0).all()


def test_clients_join_every_selector():
    selector = lockstep()
    selector.join(3)
    assert [part.num_clients for part in selector.selectors] == [15, 15]
    assert selector.num_clients == 15
    assert max(selector.select(round).clients.max() for round in range(40)) >= 12


def test_every_selector_can_be_compared():
    seeds = [1, 2]
    selector = Lockstep(
        [make_selector(name, federation(seeds)) for name in SELECTORS], [2] * len(SELECTORS)
    )
    records = list(play(selector, bernoulli(class_rates(12), seeds * len(SELECTORS)), 3, Losses()))
    assert records[-1].valid.shape == (2 * len(SELECTORS), 4)


def answers(runs=None):
    return bernoulli(np.full(5, 0.7), 1 if runs is None else runs)


def test_without_jitter_a_client_takes_exactly_its_seconds_and_who_does_not_answer_for_ever():
    seconds = np.array([0.0, 0.1, 1 / 3, 2.0, 7.0])
    for row, durations in zip(islice(answers(), 30), timed(answers(), seconds, 1), strict=False):
        assert np.array_equal(durations, np.where(row, seconds, inf))


def test_jitter_multiplies_by_log_normal_factors_of_median_one_and_the_given_spread():
    rows = 4000
    always = iter(np.ones((rows, 5), dtype=bool))
    logs = np.log(np.stack(list(timed(always, np.full(5, 2.0), 3, 0.4))) / 2.0).ravel()
    count = logs.size
    assert abs((logs < 0).mean() - 0.5) <= 5 * 0.5 / np.sqrt(
        count
    )  # median 1, five standard errors
    assert abs(logs.mean()) <= 5 * 0.4 / np.sqrt(count)
    assert abs(logs.std() - 0.4) <= 5 * 0.4 / np.sqrt(2 * count)
    assert abs((np.abs(logs) < 0.4).mean() - 0.682689) <= 5 * np.sqrt(
        0.683 * 0.317 / count
    )  # normal within one sd


def test_clients_and_rounds_jitter_independently():
    rows = 4000
    always = iter(np.ones((rows, 2), dtype=bool))
    logs = np.log(np.stack(list(timed(always, np.ones(2), 3, 1.0))))
    error = 5 / np.sqrt(rows)  # five standard errors of a correlation of zero
    assert abs(np.corrcoef(logs.T)[0, 1]) <= error
    assert abs(np.corrcoef(logs[:-1, 0], logs[1:, 0])[0, 1]) <= error
    assert abs(np.corrcoef(np.abs(logs.T))[0, 1]) <= error


@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_durations_of_runs_in_lock_step_are_those_of_each_alone(jitter):
    seeds, seconds = [4, 9, 4], np.array([[1.0] * 5, [2.0] * 5, [3.0] * 5])
    beside = np.stack(list(islice(timed(answers(seeds), seconds, seeds, jitter), 50)))
    for place, seed in enumerate(seeds):
        alone = np.stack(list(islice(timed(answers(seed), seconds[place], seed, jitter), 50)))
        assert np.array_equal(beside[:, place], alone)


@pytest.mark.parametrize(
    ("seconds", "jitter", "name"),
    [
        ([1.0, -1.0], 0.0, "seconds"),
        ([1.0, nan], 0.0, "seconds"),
        ([1.0, 1.0], -0.1, "jitter"),
        ([1.0, 1.0], nan, "jitter"),
    ],
)
def test_impossible_durations_are_refused_by_name(seconds, jitter, name):
    with pytest.raises(ValueError, match=name):
        timed(bernoulli(np.full(2, 0.5), 1), seconds, 1, jitter)
