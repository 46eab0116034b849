from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedcohort.learning import evaluation
from fedcohort.learning.weights import make_forward

from .small import both_modes, everyone, make_engine


@both_modes
def test_accuracy_and_loss_are_those_of_plain_pytorch(mode):
    engine = make_engine(mode)
    engine.train(0, *everyone([0, 1], [2, 3]))
    accuracy, loss = engine.evaluate()
    for position, run in enumerate(engine.runs):
        logits = make_forward(engine.module)(engine.models[position], engine.x[run.test])
        labels = engine.y[run.test]
        expected = (logits.argmax(dim=1) == labels).double().mean().item()
        assert accuracy[position] == pytest.approx(expected)
        assert loss[position] == pytest.approx(cross_entropy(logits, labels).item(), rel=1e-5)


def test_all_runs_can_be_tested_on_the_same_samples_instead_of_their_own():
    engine = make_engine()
    own = engine.evaluate()
    samples = engine.runs[1].test
    accuracy, loss = engine.evaluate(samples)
    assert (accuracy[1], loss[1]) == (own[0][1], own[1][1])
    alone = make_engine(runs=[replace(run, test=samples) for run in engine.runs])
    np.testing.assert_array_equal((accuracy, loss), alone.evaluate())
    np.testing.assert_array_equal(engine.evaluate(), own)


def test_more_test_samples_than_one_evaluation_batch_are_all_counted(monkeypatch):
    in_one_batch = make_engine().evaluate()
    monkeypatch.setattr(evaluation, "EVALUATION_BATCH", 5)
    np.testing.assert_allclose(make_engine().evaluate(), in_one_batch, rtol=1e-6)


@both_modes
def test_evaluation_changes_nothing(mode):
    engine = make_engine(mode)
    before = engine.models.clone()
    engine.evaluate()
    engine.losses([0, 1], np.array([[0], [1]]))
    assert torch.equal(engine.models, before)


@both_modes
def test_other_samples_of_the_same_size_are_other_samples(mode):
    engine = make_engine(mode)
    # Nobody else keeps these arrays, so a later one could get the id of an earlier one.
    losses = [engine.evaluate(np.arange(start, start + 5))[1] for start in (0, 9)]
    again = [engine.evaluate(samples)[1] for samples in (np.arange(5), np.arange(9, 14))]
    np.testing.assert_array_equal(losses, again)
    assert not np.array_equal(*losses)
