from dataclasses import fields, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedcohort.learning import Engine, Options, Run, evaluation
from fedcohort.learning.weights import make_forward

from .small import SGD, both_modes, everyone, make_engine, make_runs


@both_modes
def test_accuracy_and_loss_are_those_of_plain_pytorch(mode):
    engine = make_engine(mode)
    engine.train(0, *everyone([0, 1], [2, 3]))
    tested = engine.evaluate()
    for position, run in enumerate(engine.runs):
        logits = make_forward(engine.module)(engine.models[position], engine.x[run.test])
        labels = engine.y[run.test]
        expected = (logits.argmax(dim=1) == labels).double().mean().item()
        assert tested.accuracy[position] == pytest.approx(expected)
        expected = cross_entropy(logits, labels).item()
        assert tested.loss[position] == pytest.approx(expected, rel=1e-5)


def assert_same(one, other, **how):
    """Compare two evaluations, nan with nan."""
    for field in fields(one):
        np.testing.assert_allclose(
            getattr(one, field.name), getattr(other, field.name), **{"rtol": 0, "atol": 0} | how
        )


def test_all_runs_can_be_tested_on_the_same_samples_instead_of_their_own():
    engine = make_engine()
    own = engine.evaluate()
    samples = engine.runs[1].test
    shared = engine.evaluate(samples)
    assert (shared.accuracy[1], shared.loss[1]) == (own.accuracy[1], own.loss[1])
    alone = make_engine(runs=[replace(run, test=samples) for run in engine.runs]).evaluate()
    np.testing.assert_array_equal(shared.accuracy, alone.accuracy)
    np.testing.assert_array_equal(shared.loss, alone.loss)
    np.testing.assert_array_equal(shared.label_accuracy, alone.label_accuracy)
    assert_same(engine.evaluate(), own)


def test_more_test_samples_than_one_evaluation_batch_are_all_counted(monkeypatch):
    in_one_batch = make_engine(runs=make_grouped_runs()).evaluate()
    monkeypatch.setattr(evaluation, "EVALUATION_BATCH", 5)
    assert_same(make_engine(runs=make_grouped_runs()).evaluate(), in_one_batch, rtol=1e-6)


class Wide(nn.Sequential):
    """Has a layer of 40,000 outputs, and remembers how many samples it was given at once."""

    batches: ClassVar = []

    def __init__(self):
        super().__init__(nn.Linear(5, 40_000), nn.Linear(40_000, 3))

    def forward(self, x):
        self.batches.append(len(x))
        return super().forward(x)


def test_a_cpu_tests_few_samples_at_once_where_layers_have_many_outputs():
    samples = np.arange(260)
    run = Run(0, [samples], samples, np.array([1]))
    labels = torch.zeros(260, dtype=torch.int64)
    options = Options(mode="one-by-one")
    learner = Engine([Wide()], torch.zeros(260, 5), labels, [run], SGD, options)
    for test in (learner.evaluate, lambda: learner.losses([0], np.array([[0]]))):
        Wide.batches.clear()
        test()
        # 16 MB hold the outputs of 101 samples, and all batches are of about the same size.
        assert sorted(Wide.batches) == [86, 87, 87]


class Squeezing(nn.Linear):
    """Drops every dimension of length 1, so that it takes no single sample."""

    def forward(self, x):
        return super().forward(x.squeeze().flatten(1))


class Compiled(nn.Module):
    """Has a layer in TorchScript, which takes no hooks."""

    def __init__(self):
        super().__init__()
        self.script = torch.jit.script(nn.Linear(5, 4))
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.script(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script", "ignore:The .grad attribute")
@pytest.mark.parametrize("make_module", [lambda: Squeezing(5, 3), Compiled])
def test_any_model_that_takes_the_test_samples_is_tested_on_a_cpu(make_module):
    run = Run(0, [np.arange(4)], np.arange(9), np.array([1]))
    x = torch.ones(9, 5)
    module = make_module()
    learner = Engine([module], x, torch.zeros(9).long(), [run], SGD, Options(mode="one-by-one"))
    wanted = cross_entropy(module(x[:2]), torch.zeros(2).long()).item()
    assert learner.evaluate().loss == pytest.approx([wanted])


def test_samples_given_for_one_test_are_forgotten_at_the_next():
    engine = make_engine()
    own = engine.evaluate()
    for _ in range(20):
        assert_same(engine.evaluate(np.arange(9)), engine.evaluate(np.arange(9)))
    assert_same(engine.evaluate(), own)
    assert len(engine._evaluator._test_sets) <= len(engine.runs) + 1


@pytest.mark.parametrize("num_samples", [1, 4, 5, 13])
def test_losses_in_whole_batches_are_those_of_the_plain_pass(monkeypatch, num_samples):
    monkeypatch.setattr(evaluation, "EVALUATION_BATCH", 5)
    engine = make_engine()
    evaluator = evaluation.Evaluator(
        engine.workers, engine.x, engine.y, torch.float32, compiled=False
    )
    samples = np.arange(num_samples)[::-1].copy()
    plain = evaluator.losses(engine.models[1], samples)
    whole = evaluator.losses_in_whole_batches(engine.models[1], samples)
    torch.testing.assert_close(whole, plain, rtol=1e-5, atol=1e-6)


def make_grouped_runs():
    """Return two runs: one with three classes of clients, one with two, each with its owners."""
    fedavg, fedprox = make_runs()
    return [
        replace(
            fedavg,
            test_owners=np.array([0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 3, 3]),
            classes=np.array([2, 0, 0, 1]),
        ),
        replace(
            fedprox,
            test_owners=np.array([3, 3, 1, 1, 1, 2, 2]),
            classes=np.array([1, 0, 1, 0]),
        ),
    ]


def plain_share(is_right, belongs):
    """Return the share of the samples that belong to a group and are right, by a plain loop."""
    answers = [right for right, own in zip(is_right, belongs, strict=True) if own]
    return sum(answers) / len(answers) if answers else float("nan")


@both_modes
def test_accuracy_by_class_and_label_is_that_of_a_plain_loop_over_the_samples(mode):
    engine = make_engine(mode, runs=make_grouped_runs())
    engine.train(0, *everyone([0, 1], [2, 3]))
    tested = engine.evaluate()
    assert tested.class_accuracy.shape == (2, 3)
    assert tested.label_accuracy.shape == (2, 3)
    for position, run in enumerate(engine.runs):
        logits = make_forward(engine.module)(engine.models[position], engine.x[run.test])
        labels = engine.y[run.test].tolist()
        is_right = [int(got) == label for got, label in zip(logits.argmax(1), labels, strict=True)]
        owners = run.test_owners.tolist()
        for group in range(3):
            of_class = [run.classes[owner] == group for owner in owners]
            expected = plain_share(is_right, of_class)
            np.testing.assert_equal(tested.class_accuracy[position, group], expected)
            expected = plain_share(is_right, [label == group for label in labels])
            np.testing.assert_equal(tested.label_accuracy[position, group], expected)
    # The second run has two classes. Of the first one's three, the shares differ.
    assert np.isnan(tested.class_accuracy[1, 2])
    assert not np.isnan(tested.class_accuracy[0]).any()


def test_classes_change_neither_accuracy_nor_loss_and_samples_of_nobody_have_no_class():
    grouped, plain = make_engine(runs=make_grouped_runs()), make_engine()
    np.testing.assert_array_equal(grouped.evaluate().accuracy, plain.evaluate().accuracy)
    np.testing.assert_array_equal(grouped.evaluate().loss, plain.evaluate().loss)
    np.testing.assert_array_equal(plain.evaluate().class_accuracy[:, 0], plain.evaluate().accuracy)
    assert np.isnan(grouped.evaluate(np.arange(9)).class_accuracy).all()


def test_runs_that_share_test_samples_may_have_other_classes():
    run, _ = make_grouped_runs()
    other = replace(run, classes=np.array([0, 1, 1, 2]))
    engine = make_engine(runs=[run, other])
    tested = engine.evaluate()
    np.testing.assert_array_equal(tested.accuracy[0], tested.accuracy[1])
    np.testing.assert_array_equal(tested.class_accuracy[0], tested.class_accuracy[1, [1, 2, 0]])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"classes": np.zeros(3, int)}, r"classes must have shape \(4,\)"),
        ({"classes": np.full(4, -1)}, "classes must"),
        ({"test_owners": np.zeros(3, int)}, r"test_owners must have shape \(12,\)"),
        ({"test_owners": np.full(12, 4)}, "test_owners must"),
        ({"test_owners": None}, "test_owners must name the owner of every test sample"),
    ],
)
def test_owners_and_classes_that_do_not_fit_the_run_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        replace(make_grouped_runs()[0], **changes)


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
    losses = [engine.evaluate(np.arange(start, start + 5)).loss for start in (0, 9)]
    again = [engine.evaluate(samples).loss for samples in (np.arange(5), np.arange(9, 14))]
    np.testing.assert_array_equal(losses, again)
    assert not np.array_equal(*losses)
