"""A small federation for the engine: four clients of unequal sizes, two runs."""

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.learning import Engine, Options, Run, Sgd, make_model

SIZES = (3, 9, 4, 14)  # samples of each client; 12 more for testing
EDGES = np.cumsum([0, *SIZES])
TRAIN = [np.arange(start, start + size) for start, size in zip(EDGES, SIZES, strict=False)]
TEST = np.arange(EDGES[-1], EDGES[-1] + 12)
SGD = Sgd(rate=0.05, momentum=0.9, batch_size=4)
both_modes = pytest.mark.parametrize("mode", ["together", "one-by-one"])


def make_data():
    torch.manual_seed(7)
    samples = int(TEST[-1]) + 1
    return torch.randn(samples, 5), torch.randint(3, (samples,))


def make_runs():
    epochs = np.array([1, 2, 3, 1])
    fedavg = Run(0, TRAIN, TEST, epochs)
    epochs = np.array([2, 1, 1, 2])
    fedprox = Run(1, TRAIN[::-1], TEST[:7], epochs, mu=0.4, aggregation="normalised")
    return [fedavg, fedprox]


def make_engine(mode="one-by-one", x=None, y=None, runs=None, **options):
    inputs, labels = make_data()
    if x is not None:
        inputs = x
    if y is not None:
        labels = y
    if runs is None:
        runs = make_runs()
    modules = [make_model("mlp", (5,), 3, run.seed) for run in runs]
    return Engine(modules, inputs, labels, runs, SGD, Options(mode=mode, slots=3, **options))


def everyone(*cohorts):
    """Return the cohorts [R, k], and that every update arrives."""
    clients = np.array(cohorts)
    return clients, np.ones(clients.shape, dtype=bool)


def make_network():
    """Return a network with a convolution, for images of shape (2, 6, 6)."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, bias=False),
        nn.Flatten(),
        nn.Linear(3 * 4 * 4, 5),
        nn.ReLU(),
        nn.Linear(5, 4),
    )
