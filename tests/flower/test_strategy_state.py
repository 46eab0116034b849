"""What a strategy keeps between rounds."""

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from fakes import federation, record
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedAvgM,
)
from helpers import INITIAL, ROUNDS, fails, play

from fedcohort.flower import CohortStrategy, checkpoint
from fedcohort.flower.models import model_from_record
from fedcohort.flower.strategy_state import (
    copy_attributes,
    load_state,
    read_numbers,
    restore_attributes,
    save_state,
)


def test_whole_numbers_of_a_strategy_stay_whole_and_new_ones_are_kept(clock, tmp_path):
    class Counting(FedAvg):
        def __init__(self):
            super().__init__()
            self.step, self.best = 0, None

        def aggregate_train(self, server_round, replies):
            self.step, self.best = self.step + 1, 4.5
            return super().aggregate_train(server_round, replies)

    first = Counting()
    CohortStrategy(first, cohort_size=3, wait=10.0, deadline=5.0, folder=tmp_path).start(
        federation(clock, 6), record(**INITIAL), num_rounds=2
    )
    again = Counting()
    strategy = CohortStrategy(
        again, cohort_size=3, wait=10.0, deadline=5.0, folder=tmp_path, resume=True
    )
    strategy.start(federation(clock, 6), record(**INITIAL), num_rounds=2)
    assert (again.step, type(again.step), again.best) == (2, int, 4.5)


def test_the_state_of_strategies_inside_strategies_comes_back(tmp_path):
    def make():
        return DifferentialPrivacyServerSideFixedClipping(FedAvgM(server_momentum=0.5), 0.0, 2.0, 3)

    one, other = make(), make()
    one.current_arrays = ArrayRecord({"w": Array(np.arange(3.0))})
    one.strategy.momentum_vector = [np.full(2, float(place)) for place in range(12)]
    state = {"round": 1, "model": {}, "selector": {}, "registry": {}, "totals": {}}
    checkpoint.save(tmp_path, {**state, "strategy": save_state(one, read_numbers(make()))})
    load_state(other, checkpoint.load(tmp_path, True, {})["strategy"])
    assert np.array_equal(model_from_record(other.current_arrays)["w"], np.arange(3.0))
    assert [vector.tolist() for vector in other.strategy.momentum_vector] == [
        [float(place)] * 2 for place in range(12)
    ]
    assert other.strategy.current_arrays is None


@pytest.mark.parametrize("norm", [0.5, 1])
def test_a_number_that_a_strategy_learns_comes_back(clock, tmp_path, norm):
    def make():
        return DifferentialPrivacyServerSideAdaptiveClipping(
            FedAvg(), 0.001, 3, initial_clipping_norm=norm, clipped_count_stddev=0.5
        )

    def norm_after(rounds, resume=False):
        strategy = CohortStrategy(
            make(), "random", 3, deadline=5.0, wait=10.0, folder=tmp_path, resume=resume
        )
        strategy.start(federation(clock, 3), record(**INITIAL), num_rounds=rounds)
        return strategy.strategy.clipping_norm

    learnt = norm_after(2)
    assert learnt != norm
    assert norm_after(2, resume=True) == learnt


def test_settings_of_the_strategy_that_did_not_change_are_those_given_now(clock, tmp_path):
    play(federation(clock, 6), tmp_path, make=partial(FedAdam, eta=0.1), rounds=2)
    strategy = CohortStrategy(
        FedAdam(eta=0.2), "e3cs-0.5", 3, deadline=5.0, wait=10.0, folder=tmp_path, resume=True
    )
    strategy.start(federation(clock, 6), record(**INITIAL), num_rounds=3)
    assert strategy.strategy.eta == 0.2


def test_a_strategy_without_moments_goes_on_from_one_that_had_some(clock, tmp_path):
    play(federation(clock, 6, fails), tmp_path, make=FedAdam, rounds=2)
    assert len(play(federation(clock, 6, fails), tmp_path, make=FedAvg, resume=True)[2]) == ROUNDS


@dataclass
class Notes:
    rounds: list[int] = field(default_factory=list)


def test_all_that_an_aggregation_changes_is_put_back_as_often_as_needed():
    def change():
        strategy.nested["a"]["b"].append(1)
        strategy.recent.append(2)
        strategy.seen.add(3)
        strategy.counts["x"] += 1
        strategy.notes.rounds.append(4)
        strategy.moments[0][:] = 9.0
        strategy.pair[0].append(5)
        strategy.rng.random()
        strategy.chance.random()
        strategy.strategy.momentum_vector = [np.ones(1)]
        strategy.new = True
        strategy.step += 1

    inner = FedAvgM(server_momentum=0.5)
    strategy = DifferentialPrivacyServerSideFixedClipping(inner, 0.0, 2.0, 3)
    strategy.nested = {"a": {"b": []}}
    strategy.recent = deque([1], maxlen=3)
    strategy.seen = {1}
    strategy.counts = Counter("xy")
    strategy.notes = Notes([1])
    strategy.moments = [np.zeros(2)]
    strategy.pair = ([], 1)
    strategy.rng = np.random.default_rng(3)
    strategy.chance = random.Random(3)
    strategy.step = 0
    strategy.shared = strategy.nested["a"]
    strategy.file = file = object()  # stands for what cannot be copied

    copies = copy_attributes(strategy)
    for _ in range(2):
        change()
        restore_attributes(strategy, copies)
        assert strategy.nested == {"a": {"b": []}}
        assert strategy.shared is strategy.nested["a"]
        assert (list(strategy.recent), strategy.recent.maxlen) == ([1], 3)
        assert (strategy.seen, strategy.counts, strategy.step) == ({1}, Counter("xy"), 0)
        assert (strategy.notes, strategy.pair) == (Notes([1]), ([], 1))
        assert strategy.moments[0].tolist() == [0.0, 0.0]
        assert strategy.strategy is inner
        assert not inner.momentum_vector
        assert strategy.file is file
        assert not hasattr(strategy, "new")
    assert strategy.rng.random() == np.random.default_rng(3).random()
    assert strategy.chance.random() == random.Random(3).random()
