"""One run of three clients whose local updates are given, for the engine and for Flower."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.aggregation.base import Arrivals
from fedcohort.learning import Engine, Options, Run, Sgd
from fedcohort.learning.jobs import LocalUpdates

SIZES = (2, 3, 5)


class Scripted:
    """Local updates that return the given change of each client."""

    def __init__(self, change):
        self.change = change

    def train(self, models, jobs):
        first_samples = [min(int(v) for v in rows[:].ravel() if v >= 0) for rows in jobs.batches]
        client_of_sample = {0: 0, 2: 1, 5: 2}
        clients = [client_of_sample[sample] for sample in first_samples]
        return LocalUpdates(self.change[clients].clone(), torch.ones(len(clients)))


@pytest.fixture
def shares():
    """Return the share of each client in all samples."""
    return torch.tensor([0.2, 0.3, 0.5])


@pytest.fixture
def change():
    """Return the change [3, P] that each client's training makes."""
    torch.manual_seed(4)
    return torch.randn(3, 4)


@pytest.fixture
def make_engine(monkeypatch):
    """Return a maker of an engine with one run of three clients that return these changes."""

    def make(change, memory="float32", **options):
        ends = np.cumsum([0, *SIZES])
        train = [np.arange(start, end) for start, end in pairwise(ends)]
        options.setdefault("success_rates", np.array([0.5, 0.25, 1.0]))
        run = Run(0, train, np.array([0]), np.ones(3, dtype=np.int64), **options)
        engine = Engine(
            [nn.Linear(1, 2)],
            torch.zeros(10, 1),
            torch.zeros(10, dtype=torch.int64),
            [run],
            Sgd(),
            Options(mode="one-by-one", memory=memory),
        )
        monkeypatch.setattr(engine, "_trainer", Scripted(change))
        return engine

    return make


@pytest.fixture
def play_round():
    """Return a function that plays one round of all three clients."""

    def play(engine, round, arrived, weights=(1.0, 1.0, 1.0)):
        clients = np.array([[0, 1, 2]])
        return engine.train(round, clients, np.array([arrived]), np.array([weights]))

    return play


@pytest.fixture
def arrivals():
    """Return a maker of what one run knows of a round of some clients."""

    def make(clients, valid=None, *, available=None, **values):
        ones = np.ones((1, len(clients)))

        def row(numbers):
            return ones if numbers is None else np.array([numbers], dtype=float)

        is_valid = row(valid) > 0
        rows = [row(values.get(name)) for name in ("shares", "weights", "loss", "norm")]
        if available is not None:
            available = np.array([available], dtype=bool)
        return Arrivals(np.array([clients]), is_valid, *rows, available)

    return make
