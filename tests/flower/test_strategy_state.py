"""What a strategy keeps between rounds."""

import random
from collections import Counter, OrderedDict, deque
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
from helpers import INITIAL, ROUNDS, STOCK, fails, play

from fedcohort.files import load_state as load
from fedcohort.files import save_state as save
from fedcohort.flower import CohortStrategy, checkpoint
from fedcohort.flower.models import model_from_record
from fedcohort.flower.strategy_layers import copy_attributes, is_same, restore_attributes
from fedcohort.flower.strategy_state import from_plain, load_state, save_state, to_plain
from fedcohort.lab.folder import load_checkpoint, save_checkpoint
from fedcohort.lab.folder.flower import FLOWER_CHECKPOINT_PARTS


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
    initial = copy_attributes(one)
    one.current_arrays = ArrayRecord({"w": Array(np.arange(3.0))})
    one.strategy.momentum_vector = [np.full(2, float(place)) for place in range(12)]
    state = {"round": 1, "model": {}, "selector": {}, "registry": {}, "totals": {}}
    kept, unsaved = save_state(one, initial)
    assert unsaved == []
    checkpoint.save(tmp_path, {**state, "strategy": kept})
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


def test_a_run_does_not_go_on_with_a_strategy_of_another_class(clock, tmp_path):
    play(federation(clock, 6, fails), tmp_path, make=FedAdam, rounds=2)
    expected = r"strategy must be as in the rounds before, '.*\.FedAdam', .* got '.*\.FedAvg'"
    with pytest.raises(ValueError, match=expected):
        play(federation(clock, 6, fails), tmp_path, make=FedAvg, resume=True)


def test_a_run_does_not_go_on_around_a_strategy_of_another_class(clock, tmp_path):
    def private(inner):
        return partial(DifferentialPrivacyServerSideFixedClipping, inner(), 0.0, 2.0, 3)

    play(federation(clock, 6, fails), tmp_path, make=private(FedAvg), rounds=2)
    expected = r"got '.*\.DifferentialPrivacyServerSideFixedClipping\(.*\.FedAdam\)'"
    with pytest.raises(ValueError, match=expected):
        play(federation(clock, 6, fails), tmp_path, make=private(FedAdam), resume=True)


def test_a_checkpoint_that_does_not_name_its_strategy_is_accepted(clock, tmp_path):
    play(federation(clock, 6, fails), tmp_path, rounds=2)
    state = load_checkpoint(tmp_path, FLOWER_CHECKPOINT_PARTS)
    del state["about"]["strategy"]
    save_checkpoint(tmp_path, state)
    assert len(play(federation(clock, 6, fails), tmp_path, resume=True)[2]) == ROUNDS


class Remembering(FedAvg):
    """Keeps values of many kinds between rounds; `kept` are those that can be saved."""

    kept = ("by_client", "records", "losses", "nested", "pair", "phase", "is_warm", "order", "none")

    def __init__(self):
        super().__init__(fraction_evaluate=0.0)
        self.by_client = {}
        self.records = {}
        self.losses = []
        self.nested = {"a": {}}
        self.pair = ()
        self.phase = "warm-up"
        self.is_warm = False
        self.order = OrderedDict(z=1)
        self.none = 3
        self.settings = ["unchanged"]
        self.rng = np.random.default_rng(0)
        self.seen = set()
        self.unchanged = {1}
        self.file = object()

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        self.by_client[server_round] = np.full(2, float(server_round))
        self.records["last"] = replies[0].content.array_records["arrays"]
        self.losses.append(0.5 * server_round)
        self.nested["a"][(server_round, "x")] = {"deep": [np.float32(0.1), None, "ä"]}
        self.pair = (np.ones(1), server_round)
        self.phase = "main"
        self.is_warm = True
        self.order["a"] = float("inf")
        self.order.move_to_end("z")
        self.none = None
        self.rng.random()
        self.seen.add(server_round)
        return super().aggregate_train(server_round, replies)


def play_remembering(clock, folder, make=Remembering, rounds=2, **options):
    strategy = make()
    play(federation(clock, 6), folder, make=lambda: strategy, rounds=rounds, **options)
    return strategy


def test_what_a_strategy_of_ones_own_keeps_comes_back_as_it_was(clock, tmp_path):
    before = play_remembering(clock, tmp_path)
    after = play_remembering(clock, tmp_path, resume=True)
    assert before.losses == [0.5, 1.0]
    assert list(before.order) == ["a", "z"]
    for name in Remembering.kept:
        assert is_same(getattr(after, name), getattr(before, name)), name
        assert not is_same(getattr(Remembering(), name), getattr(before, name)), name


def test_of_what_changed_and_cannot_be_saved_there_is_one_warning_by_name(clock, tmp_path, logged):
    play_remembering(clock, tmp_path, rounds=3)
    warnings = [line for line in logged if "cannot be saved" in line]
    assert len(warnings) == 1
    assert ": Remembering.rng (Generator), Remembering.seen (set); " in warnings[0]


@pytest.mark.parametrize("name", STOCK)
def test_flowers_strategies_have_nothing_that_cannot_be_saved(clock, tmp_path, logged, name):
    play(federation(clock, 6), tmp_path, make=STOCK[name], rounds=2)
    assert [line for line in logged if "cannot be saved" in line] == []


def test_settings_of_other_kinds_than_numbers_are_those_given_now(clock, tmp_path):
    play_remembering(clock, tmp_path)
    strategy = Remembering()
    strategy.settings = ["changed by the user"]
    play(federation(clock, 6), tmp_path, make=lambda: strategy, resume=True)
    assert strategy.settings == ["changed by the user"]


class WithStateDict(Remembering):
    """Says itself what is to be saved."""

    def state_dict(self):
        return {"rng": self.rng.bit_generator.state, "seen": sorted(self.seen)}

    def load_state_dict(self, state):
        self.rng.bit_generator.state = state["rng"]
        self.seen = set(state["seen"])


def test_a_strategy_that_has_a_state_dict_is_asked_for_it(clock, tmp_path, logged):
    before = play_remembering(clock, tmp_path, make=WithStateDict)
    after = play_remembering(clock, tmp_path, make=WithStateDict, resume=True)
    assert after.seen == {1, 2}
    assert is_same(after.rng, before.rng)
    assert after.phase == "warm-up"  # only the state_dict is saved
    assert [line for line in logged if "cannot be saved" in line] == []


def of_itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        Counter("ab"),
        deque([1]),
        np.array(["a"]),
        np.zeros(2, complex),
        [np.datetime64("2026-01-01")],
        {"a": [object()]},
        [10**5000],  # more digits than Python writes
        of_itself(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_would_not_come_back_as_it_was_is_not_saved(value):
    strategy = FedAvg()
    initial = copy_attributes(strategy)
    strategy.memory = value
    state, unsaved = save_state(strategy, initial)
    assert state == {"0": {}}
    assert unsaved == [f"FedAvg.memory ({type(value).__name__})"]
    unchanged = copy_attributes(strategy)
    assert save_state(strategy, unchanged) == ({"0": {}}, [])


def test_the_attributes_of_a_checkpoint_of_version_010_are_read():
    strategy = FedAdam()
    plain = {
        "eta": {"number": 0.25},
        "m_t": {"dict": {"w": np.ones(2), "list": np.zeros(1)}},
        "momentum": {"list": {"0": np.ones(1), "1": np.zeros(1)}},
        "single": {"single": np.arange(3)},
    }
    load_state(strategy, {"0": plain})
    assert strategy.eta == 0.25
    assert {name: array.tolist() for name, array in strategy.m_t.items()} == {
        "w": [1.0, 1.0],
        "list": [0.0],
    }
    assert [array.tolist() for array in strategy.momentum] == [[1.0], [0.0]]
    assert strategy.single.tolist() == [0, 1, 2]


@pytest.mark.parametrize("plain", [{}, {"other": 1}, {"dict": {}, "list": {}}])
def test_a_strange_value_in_a_checkpoint_is_refused(plain):
    with pytest.raises(ValueError, match=r"kind of value|unpack"):
        from_plain(plain)


def test_a_table_that_looks_like_a_reference_to_an_array_comes_back(tmp_path):
    table = {"array": "0", "in": "safetensors"}
    save(tmp_path / "state.safetensors", {"memory": to_plain(table)})
    assert from_plain(load(tmp_path / "state.safetensors")["memory"]) == table


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
