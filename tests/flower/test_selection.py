"""Selectors by name and as objects."""

import numpy as np
import pytest
from fakes import (
    federation,
    record,
)
from flwr.serverapp.strategy import (
    FedAvg,
)
from helpers import cohort_strategy, initial

from fedcohort.flower import CohortStrategy
from fedcohort.flower.selection import build_selector
from fedcohort.selection.e3cs import E3CS
from fedcohort.selection.oort import Oort
from fedcohort.selection.optimal import OptimalSampling
from fedcohort.selection.random import Random
from fedcohort.selection.registry import Federation, make_selector


def test_selectors_that_rank_by_loss_get_it(clock):
    grid = federation(clock, 6)
    strategy = cohort_strategy(selector="rpow-d", cohort_size=2, loss_key="train_loss")
    strategy.start(grid, initial(), num_rounds=8)
    assert strategy.selector.last_losses.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    again = strategy.selector.select(
        99, [0, 1, 4]
    )  # fewer than the candidates drawn: the two lossiest for sure
    assert again.clients.tolist() == [1, 4]


def test_selectors_that_rank_by_length_get_it(clock):
    selector = OptimalSampling(4, 4, data_sizes=np.ones(4), rng=0)
    strategy = cohort_strategy(selector=selector, cohort_size=4)
    grid = federation(clock, 4, lambda client, round: client == 3)
    strategy.start(grid, record(w=[0.0, 0.0], steps=np.array([7])), num_rounds=1)
    # Client i moves both weights half way to i + 1; the counter is no part of the length.
    wanted = [np.sqrt(0.5), np.sqrt(2.0), np.sqrt(4.5), np.inf]
    np.testing.assert_allclose(strategy.selector.norms, wanted)


def test_a_length_beyond_the_range_of_floats_does_not_end_the_run(clock):
    selector = OptimalSampling(2, 2, data_sizes=np.ones(2), rng=0)
    strategy = cohort_strategy(selector=selector, cohort_size=2)
    # Both move half way from -1e200, and the square of that is infinite.
    strategy.start(federation(clock, 2), record(w=[-1e200]), num_rounds=2)
    assert strategy.training.totals.arrived == 4
    assert np.isfinite(strategy.selector.norms).all()


def test_selectors_that_rank_by_time_get_it(clock):
    grid = federation(clock, 4, lambda client, round: client == 3)
    for client, delay in zip(grid.clients.values(), (1.0, 2.0, 60.0, 3.0), strict=True):
        client.delay = delay
    selector = RecordingSeconds(4, 4, rng=0)
    strategy = cohort_strategy(selector=selector, cohort_size=4, deadline=10.0)
    strategy.start(grid, initial(), num_rounds=1)
    # Client 2 does not answer before the deadline, client 3 reports its failure before.
    assert selector.told[0] == pytest.approx([1.0, 2.0, 10.0, 3.0])


class RecordingSeconds(Random):
    needs_seconds = True

    def update(self, outcome):
        self.told = [*getattr(self, "told", []), outcome.seconds.tolist()]
        super().update(outcome)


@pytest.mark.parametrize("name", ["cs-ucb", "cs-ucb-q", "rbcs-f", "fedcs-time"])
def test_selectors_by_time_know_the_deadline_and_play(clock, name):
    grid = federation(clock, 6, lambda client, round: client == 5)
    strategy = cohort_strategy(selector=name, cohort_size=2, deadline=10.0)
    strategy.start(grid, initial(), num_rounds=8)
    assert strategy.selector.deadline == 10.0
    assert strategy.training.totals.sent == 16


def test_oort_plays_with_losses_and_seconds(clock):
    selector = Oort(6, 2, data_sizes=np.arange(1, 7), rng=0)
    strategy = cohort_strategy(selector=selector, cohort_size=2, loss_key="train_loss")
    strategy.start(federation(clock, 6), initial(), num_rounds=12)
    np.testing.assert_array_equal(selector.losses, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (selector.seconds > 0).all()


class TwoVerbs:
    num_clients, cohort_size = 6, 3

    def select(self, round, available=None): ...
    def update(self, outcome): ...
    def join(self, count=1): ...


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"selector": "rpow-d"}, "loss_key must name the loss that clients report, .* got None"),
        (
            {"selector": make_selector("rpow-d", Federation(6, 3, rng=0, horizon=1))},
            "loss_key must name the loss",
        ),
        (
            {"selector": "oort"},
            "data_sizes must be given for 'oort': numbers of samples by name of the client, "
            "or 'replies' for those that clients declare; got None",
        ),
        ({"selector": "optimal"}, "data_sizes must be given for 'optimal': numbers of samples"),
        ({"selector": "f3ast"}, "data_sizes must be given for 'f3ast': numbers of samples"),
        (
            {"selector": "cs-ucb", "deadline": None},
            "selector must be an object, not the name 'cs-ucb', where deadline must be given",
        ),
        (
            {"selector": Oort(6, 3, data_sizes=np.ones(6), rng=0)},
            "loss_key must name the loss that clients report, .* got None",
        ),
        ({"selector": "clustered"}, "data_sizes must be given for 'clustered': numbers of samples"),
        (
            {"selector": "cs-ucb", "deadline": "auto"},
            "deadline must be a number for 'cs-ucb', which compares times with it, got one that",
        ),
        ({"data_sizes": [1, 2]}, r"data_sizes must be numbers of samples by name .*, got \[1, 2\]"),
        ({"data_sizes": {"a": 0}}, "data_sizes of a must be between 1.0 and .*, got 0"),
        (
            {"selector": "mine.py:Oldest"},
            "selector 'mine.py:Oldest' must be in a file that is there",
        ),
        (
            {"aggregation": "mine.py:Rule"},
            "aggregation 'mine.py:Rule' must be in a file that is there",
        ),
        (
            {"selector": None},
            "selector must be a name or an object with .*, got None without num_clients",
        ),
        ({"selector": E3CS}, "selector must be a name or an object with .*, got the class E3CS"),
        (
            {"selector": TwoVerbs(), "folder": "here"},
            "selector must be .* without state_dict, load_state_dict",
        ),
        ({"limits": 50}, "limits must be Limits, got 50"),
        ({"folder": "taken"}, "folder must be a folder, got taken, where taken is a file"),
        ({"deadline": "60"}, "deadline must be a number, a function or 'auto', got '60'"),
    ],
)
def test_what_would_end_the_first_round_is_refused_before_it(tmp_path, monkeypatch, wrong, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match=message):
        cohort_strategy(**wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_the_cohort_size_of_a_selector_of_ones_own_cannot_be_another(clock):
    with pytest.raises(ValueError, match="cohort_size must be the selector's, 2, got 3"):
        CohortStrategy(FedAvg(), E3CS(5, 2, rng=0), 3)
    assert CohortStrategy(FedAvg(), E3CS(5, 2, rng=0), 2).options.cohort_size == 2


def test_a_selector_of_ones_own_cannot_know_more_clients_than_are_announced():
    with pytest.raises(ValueError, match="num_clients must be at least the selector's, 5, got 4"):
        CohortStrategy(FedAvg(), E3CS(5, 2, rng=0), num_clients=4)
    assert CohortStrategy(FedAvg(), E3CS(5, 2, rng=0), num_clients=5).options.num_clients == 5


def test_as_many_clients_join_a_selector_as_it_lacks():
    own = E3CS(3, 2, rng=0)
    built = build_selector(own, num_clients=7, cohort_size=2, seed=0, horizon=5)
    assert built is own
    assert built.num_clients == 7
    same = build_selector(own, num_clients=7, cohort_size=2, seed=0, horizon=5)
    assert same.num_clients == 7
