from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from fedcohort.learning import Engine, Options, make_model

from .small import SGD, TEST, TRAIN, everyone, make_data, make_engine, make_runs


def test_samples_that_there_are_not_are_refused_by_name_bound_and_value():
    x, y = make_data()
    last = len(y) - 1
    with pytest.raises(ValueError, match=f"x and y must be equally long, got {len(x)} and {last}"):
        make_engine(y=y[:-1])

    beyond = replace(make_runs()[0], train=[*TRAIN[:3], np.array([0, last + 1])])
    with pytest.raises(ValueError, match=f"train must be between 0 and {last}, got {last + 1}"):
        make_engine(runs=[beyond])

    negative = replace(make_runs()[0], test=np.array([2, -1]))
    with pytest.raises(ValueError, match=f"test must be between 0 and {last}, got -1"):
        make_engine(runs=[negative])


def test_positions_that_are_no_whole_numbers_are_refused():
    halves = [samples + 0.5 for samples in TRAIN]
    for name, positions in (("train", halves), ("test", np.array([0.5]))):
        message = f"{name} must be whole numbers, positions of samples, got float64"
        with pytest.raises(ValueError, match=message):
            make_engine(runs=[replace(make_runs()[0], **{name: positions})])


@pytest.mark.parametrize("kinds", [(np.uint64, np.int64), (np.uint8, np.uint64)])
def test_whole_positions_of_clients_may_be_of_several_types(kinds):
    expected = make_engine(runs=make_runs()[:1])
    mixed = [samples.astype(kinds[number % 2]) for number, samples in enumerate(TRAIN)]
    test = TEST.astype(kinds[0])
    engine = make_engine(runs=[replace(make_runs()[0], train=mixed, test=test)])
    clients, arrived = everyone([0, 1, 2, 3])
    for one in (expected, engine):
        one.train(0, clients, arrived)
    np.testing.assert_array_equal(engine.models.numpy(), expected.models.numpy())
    np.testing.assert_array_equal(engine.losses([0], clients), expected.losses([0], clients))
    np.testing.assert_array_equal(engine.evaluate().loss, expected.evaluate().loss)

    mixed[2] = mixed[2].astype(float)
    with pytest.raises(ValueError, match=r"train must be whole numbers, .*, got float64"):
        make_engine(runs=[replace(make_runs()[0], train=mixed)])


def test_a_model_of_which_nothing_is_trained_is_refused():
    x, y = make_data()
    frozen = nn.Linear(5, 3).requires_grad_(False)
    message = "modules must have a parameter that is trained, got only frozen ones in Linear"
    with pytest.raises(ValueError, match=message):
        Engine([frozen], x, y, make_runs()[:1], SGD)


@pytest.mark.parametrize("label", [-100, 3])
def test_labels_that_are_no_class_are_refused(label):
    _, y = make_data()
    y[5] = label
    with pytest.raises(ValueError, match=f"y must be between 0 and 2, got {label}"):
        make_engine(y=y)


def test_inputs_and_labels_of_other_types_are_refused():
    x, y = make_data()
    message = r"x must be float32 and y int64, got torch\.float32 and torch\.int32"
    with pytest.raises(ValueError, match=message):
        make_engine(y=y.int())
    message = r"x must be float32 and y int64, got torch\.float64 and torch\.int64"
    with pytest.raises(ValueError, match=message):
        make_engine(x=x.double())


def test_as_many_models_as_runs_are_needed():
    x, y = make_data()
    with pytest.raises(ValueError, match=r"modules must be one per run, .*, got 0 for 0 runs"):
        Engine([], x, y, [], SGD)
    model = make_model("mlp", (5,), 3, 0)
    with pytest.raises(ValueError, match=r"modules must be one per run, .*, got 1 for 2 runs"):
        Engine([model], x, y, make_runs(), SGD, Options(mode="one-by-one"))


def test_models_without_parameters_are_refused():
    x, y = make_data()
    message = "modules must have the same parameters, at least one, got 0 in Identity"
    with pytest.raises(ValueError, match=message):
        Engine([nn.Identity() for _ in make_runs()], x, y, make_runs(), SGD)


def test_runs_of_unequal_numbers_of_clients_are_refused():
    fewer = replace(make_runs()[1], train=TRAIN[:3], epochs=np.array([1, 1, 1]))
    with pytest.raises(ValueError, match="runs must have as many clients each, 4, got 3"):
        make_engine(runs=[make_runs()[0], fewer])


def test_the_check_leaves_a_model_in_the_mode_it_was_in():
    x, y = make_data()
    model = make_model("mlp", (5,), 3, 0).train()
    Engine([model], x, y, make_runs()[:1], SGD, Options(mode="one-by-one"))
    assert model.training
