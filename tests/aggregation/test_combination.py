"""Weighted updates of many runs in one product, on arrays and on tensors."""

import numpy as np
import pytest
import torch

from fedcohort.aggregation.combination import combine


def test_each_run_gets_its_own_weighted_sum_or_average():
    # run 0: 0.5 * 2 + 0.25 * 4 = 2, and over 0.75 it is 8/3; run 1: 0.25 * 8 = 2
    weights = torch.tensor([[0.5, 0.25, 0.0], [0.0, 0.0, 0.25]], dtype=torch.float64)
    updates = torch.tensor([[2.0], [4.0], [8.0]], dtype=torch.float64)
    sums = combine(weights, updates, torch.tensor([False, False]))
    averages = combine(weights, updates, torch.tensor([True, True]))
    assert sums.ravel().tolist() == [2.0, 2.0]
    assert averages.ravel().tolist() == [2.0 / 0.75, 8.0]


def test_a_run_without_weights_does_not_move():
    weights = torch.zeros(2, 1)
    change = combine(weights, torch.tensor([[3.0]]), torch.tensor([True, False]))
    assert change.ravel().tolist() == [0.0, 0.0]


def test_a_tiny_share_is_normalised_to_a_whole_step():
    tiny = torch.finfo(torch.float32).tiny
    change = combine(torch.tensor([[tiny]]), torch.tensor([[3.0]]), torch.tensor([True]))
    assert change.item() == pytest.approx(3.0)


def test_arrays_and_tensors_give_the_same_change():
    rng = np.random.default_rng(1)
    weights = rng.random((5, 7))
    weights[2] = 0.0
    updates = rng.normal(size=(7, 20))
    normalises = np.array([True, False, True, True, False])
    on_arrays = combine(weights, updates, normalises)
    on_tensors = combine(*map(torch.from_numpy, (weights, updates, normalises)))
    np.testing.assert_allclose(on_arrays, on_tensors.numpy(), rtol=1e-12)
