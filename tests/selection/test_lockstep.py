from itertools import islice
from math import nan

import numpy as np
import pytest
from states import same_state

from fedcohort.rounds import Returned, play
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import NOBODY, Cohort, Outcome
from fedcohort.selection.random import Random
from fedcohort.selection.registry import SELECTORS, Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates


class Losses:
    """A learner whose losses differ by client and round; client 3 returns an invalid update."""

    def train(self, round, clients, arrived, weights, available=None):
        valid = arrived & (clients != 3)
        loss = np.where(valid, 1 + np.sin(7.0 * clients + round), nan)
        return Returned(valid, loss, norm=2 * loss)


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
        data_sizes=10 + np.arange(12),
        deadline=1.0,
    )


def played(selector, seeds):
    """Return all that happened in 20 rounds, by name, [rounds, runs, ...]."""
    records = list(play(selector, bernoulli(class_rates(12), seeds), 20, Losses()))
    columns = {}
    for name in ("arrived", "valid", "seconds", "wasted"):
        columns[name] = np.stack([getattr(record, name) for record in records])
    for name in ("clients", "inclusion"):
        columns[name] = np.stack([getattr(record.cohort, name) for record in records])
    return columns


@pytest.mark.parametrize(
    "pair",
    [
        ("e3cs-0.5", "random"),
        ("rpow-d", "e3cs-inc"),
        ("fedcs", "pow-d"),
        ("age", "oort"),
        ("f3ast", "optimal"),
        ("cs-ucb-q", "clustered"),
        ("rbcs-f", "refl"),
        ("fedcs-time", "cs-ucb"),
    ],
    ids="+".join,
)
def test_selectors_in_lock_step_do_what_each_does_alone(pair):
    seeds = ([3, 4], [5])
    rows = (slice(0, 2), slice(2, 3))
    selectors = [make_selector(pair[index], federation(seeds[index])) for index in (0, 1)]
    together = played(Lockstep(selectors, [2, 1]), [3, 4, 5])
    for index in (0, 1):
        own_part = {key: values[:, rows[index]] for key, values in together.items()}
        alone = make_selector(pair[index], federation(seeds[index]))
        assert same_state(played(alone, seeds[index]), own_part)
        assert same_state(alone.state_dict(), selectors[index].state_dict())


def lockstep(names=("e3cs-0.5", "rpow-d"), runs=(2, 1)):
    """Return selectors in lock-step whose seeds count on from 3."""
    seeds = iter(range(3, 99))
    selectors = []
    for name, count in zip(names, runs, strict=True):
        selectors.append(make_selector(name, federation(list(islice(seeds, count)))))
    return Lockstep(selectors, list(runs))


def test_a_restored_lock_step_goes_on_exactly_and_skips_the_rounds_it_has_seen():
    def cohorts(selector, rounds, start=0):
        world = bernoulli(class_rates(12), [3, 4, 5])
        records = play(selector, world, rounds, Losses(), start=start)
        return [record.cohort.clients for record in records]

    uninterrupted = lockstep()
    expected = cohorts(uninterrupted, 20)

    stopped = lockstep()
    first = cohorts(stopped, 8)
    resumed = lockstep()
    resumed.load_state_dict(stopped.state_dict())
    second = cohorts(resumed, 20, start=8)
    assert np.array_equal(np.stack(expected), np.stack(first + second))
    assert same_state(uninterrupted.state_dict(), resumed.state_dict())


def test_a_lock_step_with_a_cohort_in_flight_can_be_put_back():
    def build():
        small = Federation(6, 2, rng=[0, 1], horizon=9)
        return Lockstep([make_selector(name, small) for name in ("e3cs-0.5", "random")], [2, 2])

    original = build()
    restored = build()
    cohort = original.select(0)
    restored.load_state_dict(original.state_dict())
    for selector in (original, restored):
        selector.update(Outcome(cohort, np.ones((4, 2))))
    np.testing.assert_array_equal(original.select(1).clients, restored.select(1).clients)


def test_a_state_that_is_refused_changes_no_selector():
    parts = [make_selector("e3cs-0", Federation(6, 2, rng=[seed], horizon=9)) for seed in (0, 1)]
    lockstep = Lockstep(parts, [1, 1])
    lockstep.select(0)
    before = lockstep.state_dict()
    state = lockstep.state_dict()
    state["0"]["log_weights"] = state["0"]["log_weights"] + 1
    state["0"]["asked"]["log_cap"] = state["0"]["asked"]["log_cap"] + 1
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
    selectors = [make_selector(name, federation(seeds)) for name in SELECTORS]
    world = bernoulli(class_rates(12), seeds * len(SELECTORS))
    records = list(play(Lockstep(selectors, [2] * len(SELECTORS)), world, 3, Losses()))
    asked = records[-1].cohort.is_asked.sum(axis=-1)
    assert asked.tolist() == [4] * (2 * len(SELECTORS) - 2) + [6] * 2  # over-selection is last


def test_every_run_asks_those_available_in_its_own_row():
    selector = lockstep(("random", "fedcs"), (2, 2))
    is_even = np.arange(12) % 2 == 0
    available = np.stack([is_even, ~is_even, ~is_even, is_even])
    clients = selector.select(0, available).clients
    assert np.take_along_axis(available, clients, axis=-1).all()


def test_a_cohort_in_flight_is_forgotten_when_clients_join():
    selector = lockstep()
    cohort = selector.select(0)
    selector.join(1)
    with pytest.raises(ValueError, match="select first"):
        selector.update(Outcome(cohort, np.ones((3, 4)), np.ones((3, 4))))


def test_runs_that_ask_fewer_clients_are_filled_with_nobody_who_counts_nowhere():
    seeds = [0, 1]
    selectors = [make_selector("random", federation([seed])) for seed in seeds]
    together = Lockstep(selectors, [1, 1])
    online = np.ones((2, 12), dtype=bool)
    online[1, 2:] = False
    answers = np.full((2, 12), 3.0)
    (record,) = play(together, [answers], 1, Losses(), deadline=5.0, available=[online])

    assert record.cohort.clients[1].tolist() == [0, 1, NOBODY, NOBODY]
    assert record.cohort.inclusion[1].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert record.cohort.correction[1].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert record.arrived[1].tolist() == [True, True, False, False]
    assert float(record.wasted[1]) == 0.0
    alone = make_selector("random", federation([0]))
    assert np.array_equal(alone.select(0, online[:1]).clients, record.cohort.clients[:1])


def test_selectors_with_other_cohort_sizes_and_limits_play_together():
    small = Random(12, 2, rng=[0])
    large = Random(12, 5, rng=[0, 1])
    large.enough = 3
    together = Lockstep([small, large], [1, 2])
    assert together.cohort_size == 5
    assert together.enough.tolist() == [12, 3, 3]

    seconds = np.tile(np.arange(12.0), (3, 1))
    (record,) = play(together, [seconds], 1, deadline=50.0)
    assert record.arrived[0].tolist() == [True, True, False, False, False]
    assert record.arrived[1:].sum(axis=-1).tolist() == [3, 3]
    assert record.seconds.tolist() == record.cohort.clients[[0, 1, 2], [1, 2, 2]].tolist()


def test_nobody_may_stand_only_behind_the_clients_of_several_runs():
    Cohort(0, [[1, 2], [3, NOBODY]], [[1.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="only behind"):
        Cohort(0, [[1, 2], [NOBODY, 3]], [[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="at least 0"):
        Cohort(0, [1, NOBODY], [1.0, 0.0])
