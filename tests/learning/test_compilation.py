"""Records of what a function computes."""

import random

import torch
from torch import nn
from torch.func import grad, vmap
from torch.nn.functional import dropout

from fedcohort.learning.compilation import record


def test_a_record_computes_the_same_bits_without_batching_and_differentiating():
    layer = nn.Linear(4, 3)

    def loss(weight, x):
        return torch.tanh(torch.func.functional_call(layer, {"weight": weight}, (x,))).sum()

    slopes = vmap(grad(loss))
    weights = torch.randn(5, 3, 4)
    replay = record(slopes, (weights, torch.randn(5, 7, 4)))
    for _ in range(3):
        x = torch.randn(5, 7, 4)
        assert torch.equal(replay(weights, x), slopes(weights, x))


def test_a_record_draws_anew_at_every_replay():
    def drop(x):
        return vmap(lambda row: dropout(row, 0.5), randomness="different")(x)

    x = torch.ones(20, 30)
    replay = record(drop, (x,))
    torch.manual_seed(1)
    expected = [drop(x), drop(x)]
    torch.manual_seed(1)
    replayed = [replay(x), replay(x)]
    assert not torch.equal(*replayed)
    assert all(torch.equal(a, b) for a, b in zip(replayed, expected, strict=True))


def test_a_function_that_decides_in_python_is_not_recorded():
    flips = iter([True, False])

    def by_state(x):
        return x + 1 if next(flips) else x * 2

    def by_chance(x):
        return x * torch.tensor(random.random())

    def by_number(x):
        return x if x.sum() > 0 else -x

    for function in (by_state, by_chance, by_number):
        assert record(function, (torch.ones(3),)) is None
