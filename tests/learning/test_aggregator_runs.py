"""Runs of different rules and server steps together, beside plain loops over single runs."""

import numpy as np
import pytest
import torch

from fedcohort.learning.aggregator import Aggregator
from fedcohort.learning.run import Run

CLIENTS = 4
WEIGHTS = 3
SIZES = (1, 2, 3, 4)  # samples of the clients; a tenth each
RUNS = (
    {"aggregation": "paper", "server_momentum": 0.5, "server_rate": 0.8},
    {"aggregation": "normalised", "server_optimizer": "adam", "server_rate": 0.1},
    {"aggregation": "mifa"},
    {"aggregation": "fedvarp", "server_optimizer": "yogi", "server_rate": 0.2},
    {"aggregation": "normalised"},
)


def make_runs():
    owned = []
    start = 0
    for size in SIZES:
        owned.append(np.arange(start, start + size))
        start += size
    test = np.array([start])
    epochs = np.ones(CLIENTS, dtype=np.int64)
    return [Run(seed, owned, test, epochs, **options) for seed, options in enumerate(RUNS)]


class OneRun:
    """One run worked out client by client, in float64."""

    def __init__(self, options):
        self.rule = options["aggregation"]
        self.rate = options.get("server_rate", 1.0)
        self.momentum = options.get("server_momentum", 0.0)
        self.optimizer = options.get("server_optimizer", "sgd")
        self.model = np.zeros(WEIGHTS)
        self.first = np.zeros(WEIGHTS)
        self.second = np.zeros(WEIGHTS)
        self.memory = np.zeros((CLIENTS, WEIGHTS))

    def play(self, updates):
        """Move the model by the valid updates, by client."""
        if not updates:
            return
        shares = {client: SIZES[client] / 10 for client in range(CLIENTS)}
        change = np.zeros(WEIGHTS)
        remembers = self.rule in ("mifa", "fedvarp")
        for client, update in updates.items():
            change += shares[client] * (update - self.memory[client] * remembers)
        if self.rule in ("normalised", "fedvarp"):
            change = change / sum(shares[client] for client in updates)
        if remembers:
            for client in range(CLIENTS):
                change = change + shares[client] * self.memory[client]
            for client, update in updates.items():
                self.memory[client] = update
        self._step(change)

    def _step(self, change):
        if self.optimizer == "sgd":
            self.first = self.momentum * self.first + change
            self.model = self.model + self.rate * self.first
            return
        self.first = 0.9 * self.first + 0.1 * change
        square = change**2
        if self.optimizer == "adam":
            self.second = 0.99 * self.second + 0.01 * square
        else:
            self.second = self.second - 0.01 * square * np.sign(self.second - square)
        self.model = self.model + self.rate * self.first / (np.sqrt(self.second) + 1e-3)


def play(aggregator, rng, models, rounds, singles):
    """Play rounds in which some updates are lost, some not valid, and run 4 hears of nobody."""
    for number in range(rounds):
        clients = np.stack([rng.permutation(CLIENTS)[:3] for _ in RUNS])
        arrived = rng.random(clients.shape) < 0.8
        valid = arrived & (rng.random(clients.shape) < 0.8)
        if number % 2:
            arrived[4] = False
            valid[4] = False
        change = rng.normal(size=(int(arrived.sum()), WEIGHTS))
        by_run = [{} for _ in RUNS]
        for update, (run, place) in zip(change, np.argwhere(arrived), strict=True):
            if valid[run, place]:
                by_run[run][int(clients[run, place])] = update
        for single, updates in zip(singles, by_run, strict=True):
            single.play(updates)
        nothing = np.full(clients.shape, np.nan)
        arrivals = aggregator.describe(clients, valid, np.ones(clients.shape), nothing, nothing)
        tensor = torch.tensor(change, dtype=torch.float32)
        models = aggregator.move(models, tensor, arrived, arrivals)
    return models


@pytest.mark.parametrize("cut", [0, 3])
def test_runs_together_move_as_each_of_them_alone(cut):
    rng = np.random.default_rng(5)
    singles = [OneRun(options) for options in RUNS]
    models = torch.zeros((len(RUNS), WEIGHTS))
    aggregator = Aggregator(make_runs(), models, learning_rate=0.1)
    models = play(aggregator, rng, models, cut, singles)

    again = Aggregator(make_runs(), models, learning_rate=0.1)
    again.load_state_dict(aggregator.state_dict())
    again.memory.restore(*aggregator.memory.all_known())
    models = play(again, rng, models, 6 - cut, singles)
    for run, single in enumerate(singles):
        np.testing.assert_allclose(models[run].numpy(), single.model, rtol=2e-4, atol=1e-5)


def test_a_round_in_which_nobody_arrives_moves_nothing():
    models = torch.ones((len(RUNS), WEIGHTS))
    aggregator = Aggregator(make_runs(), models, learning_rate=0.1)
    clients = np.tile(np.arange(3), (len(RUNS), 1))
    nobody = np.zeros(clients.shape, dtype=bool)
    nothing = np.full(clients.shape, np.nan)
    arrivals = aggregator.describe(clients, nobody, np.ones(clients.shape), nothing, nothing)
    assert arrivals.shares.tolist() == [[0.1, 0.2, 0.3]] * len(RUNS)
    assert torch.equal(aggregator.move(models, None, nobody, arrivals), models)


def test_only_rows_that_changed_since_the_last_time_are_taken():
    models = torch.zeros((len(RUNS), WEIGHTS))
    memory = Aggregator(make_runs(), models, learning_rate=0.1).memory
    assert memory.runs == [2, 3]
    run = torch.tensor([2, 3, 0, 2])
    client = torch.tensor([1, 3, 0, 2])
    valid = torch.tensor([True, True, True, False])
    memory.store(torch.arange(12.0).reshape(4, 3), valid, run, client)
    places, updates = memory.take_changed()
    assert places.tolist() == [[0, 1], [1, 3]]
    assert updates.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert len(memory.take_changed()[0]) == 0
    memory.store(torch.full((1, 3), 9.0), torch.tensor([True]), torch.tensor([3]), client[:1])
    assert memory.take_changed()[0].tolist() == [[1, 1]]
    assert memory.all_known()[0].tolist() == [[0, 1], [1, 1], [1, 3]]


class Weights:
    """A rule that returns what it is given."""

    client_arrays = ()

    def __init__(self, weights):
        self.weights = weights

    def weigh(self, arrivals):
        return self.weights

    def learn(self, arrivals):
        pass


def move_by(weights, valid):
    """Return the model of one run after a round of two clients whose updates are one."""
    models = torch.zeros((1, WEIGHTS))
    aggregator = Aggregator(make_runs()[:1], models, learning_rate=0.1)
    aggregator._rules = [("mine.py:Rule", Weights(weights), np.array([0]))]
    some = np.ones((1, 2))
    arrivals = aggregator.describe(np.array([[0, 1]]), np.array([valid]), some, some, some)
    return aggregator.move(models, torch.ones((2, WEIGHTS)), np.ones((1, 2), bool), arrivals)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[0.5, np.nan]], "must be finite for updates that count, got nan"),
        ([[np.inf, 0.5]], "must be finite for updates that count, got inf"),
        ([0.5, 0.5], r"must have shape \(1, 2\), got \(2,\)"),
        (1.0, r"must have shape \(1, 2\), got \(\)"),
        (None, r"must have shape \(1, 2\), got \(\)"),
        ("half", r"must be numbers of shape \(1, 2\), got 'half'"),
    ],
)
def test_weights_that_cannot_be_used_name_the_rule(weights, message):
    with pytest.raises(ValueError, match=f"weights of the aggregation 'mine.py:Rule' {message}"):
        move_by(weights, [True, True])


def test_the_weight_of_an_update_that_does_not_count_is_ignored():
    assert torch.equal(
        move_by([[0.5, np.nan]], [True, False]), move_by([[0.5, 3.0]], [True, False])
    )
