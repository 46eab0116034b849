from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.learning.engine import Engine
from fedcohort.learning.models import MODELS, make_model
from fedcohort.learning.options import Options
from fedcohort.learning.run import Run
from fedcohort.learning.sgd import Sgd
from fedcohort.learning.weights import flat_weights

IMAGES = {"mlp": (1, 8, 8), "small-cnn": (1, 8, 8), "emnist-cnn": (1, 28, 28)}
IMAGES |= {name: (3, 32, 32) for name in MODELS if name.startswith("cifar-cnn")}


def parameters(model):
    return {name: p.numel() for name, p in model.named_parameters()}


def test_the_networks_are_those_of_the_paper_counted_by_hand():
    # CIFAR-10: 32 -> conv 5 -> 28 -> pool 14 -> conv 5 -> 10 -> pool 5: 64 * 5 * 5 = 1600 features
    #   conv1 64*3*25 + 64, conv2 64*64*25 + 64,
    #   full1 1600*384 + 384, full2 384*192 + 192, out 192*10 + 10
    cifar = 4_864 + 102_464 + 614_784 + 73_920 + 1_930
    assert sum(parameters(make_model("cifar-cnn", (3, 32, 32), 10, 0)).values()) == cifar == 797_962
    # Other readings: pool3 28 -> 13 -> 9 -> 4, pool3-ceil 28 -> 14 -> 10 -> 5,
    #   same 32 -> 16 -> 16 -> 8, same-pool3 32 -> 15 -> 15 -> 7
    for name, side in (("pool3", 4), ("pool3-ceil", 5), ("same", 8), ("same-pool3", 7)):
        read = parameters(make_model(f"cifar-cnn-{name}", (3, 32, 32), 10, 0))
        assert sum(read.values()) == cifar - 614_784 + 64 * side * side * 384 + 384
    # EMNIST-Letter: 28 -> 24 -> 12 -> 8 -> 4: 10 * 4 * 4 = 160 features
    #   conv1 10*1*25 + 10, conv2 10*10*25 + 10,
    #   full1 160*1280 + 1280, full2 1280*256 + 256, out 256*26 + 26
    emnist = 260 + 2_510 + 206_080 + 327_936 + 6_682
    assert (
        sum(parameters(make_model("emnist-cnn", (1, 28, 28), 26, 0)).values()) == emnist == 543_468
    )


def test_the_networks_of_the_paper_have_no_nonlinearity_at_the_end_and_relu_inside():
    model = make_model("emnist-cnn", (1, 28, 28), 26, 0)
    x = torch.randn(3, 1, 28, 28)
    hidden = nn.functional.max_pool2d(
        torch.relu(nn.functional.conv2d(x, model.conv1.weight, model.conv1.bias)), 2
    )
    hidden = nn.functional.max_pool2d(
        torch.relu(nn.functional.conv2d(hidden, model.conv2.weight, model.conv2.bias)), 2
    )
    hidden = hidden.reshape(3, 160)
    for layer in (model.full1, model.full2):
        hidden = torch.relu(hidden @ layer.weight.T + layer.bias)
    torch.testing.assert_close(model(x), hidden @ model.out.weight.T + model.out.bias)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_one_logit_per_class_and_no_buffers(name):
    model = make_model(name, IMAGES[name], 7, 0)
    assert model(torch.zeros(2, *IMAGES[name])).shape == (2, 7)
    assert list(model.buffers()) == []


@pytest.mark.parametrize("name", ["mlp", "small-cnn"])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(name):
    first, again, other = (
        flat_weights(make_model(name, (1, 8, 8), 10, seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_weights_do_not_depend_on_the_global_generator_and_leave_it_alone():
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first = flat_weights(make_model("mlp", (4,), 3, 5))
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(100)
    assert torch.equal(flat_weights(make_model("mlp", (4,), 3, 5)), first)


def test_the_global_generator_is_given_back_even_if_the_model_cannot_be_made():
    def broken(shape, classes):
        torch.rand(3)
        raise RuntimeError("no such model")

    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="no such model"):
        make_model(broken, (4,), 2, 5)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_mlp_takes_features_as_well_as_images():
    assert make_model("mlp", (13,), 3, 0)(torch.zeros(2, 13)).shape == (2, 3)
    assert make_model("mlp", (2, 3, 5), 3, 0)(torch.zeros(2, 2, 3, 5)).shape == (2, 3)


def test_an_unknown_model_gets_the_nearest_name():
    with pytest.raises(
        ValueError,
        match=r"model must be one of .*cifar-cnn.*, got 'cifar_cnn'; did you mean 'cifar-cnn'",
    ):
        make_model("cifar_cnn", (3, 32, 32), 10, 0)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.BatchNorm2d(2), (2, 4, 4)),
        (nn.BatchNorm1d(3), (3,)),
        # without running statistics: the last batch, filled up, would be another batch
        (nn.BatchNorm1d(3, track_running_stats=False), (3,)),
        (nn.InstanceNorm2d(2, track_running_stats=True), (2, 4, 4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_layer_with_statistics_over_batches_is_refused_by_name_with_a_remedy(layer, shape):
    def make(shape, classes):
        inside = nn.Sequential(nn.Identity(), layer)
        return nn.Sequential(
            nn.Identity(), inside, nn.Flatten(), nn.Linear(int(np.prod(shape)), classes)
        )

    with pytest.raises(
        ValueError, match=rf"{type(layer).__name__} at '1\.1'; use GroupNorm or LayerNorm"
    ):
        make_model(make, shape, 2, 0)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cifar-cnn", (1, 8, 8)),
        ("emnist-cnn", (1, 8, 8)),
        ("emnist-cnn", (1, 28, 20)),
        ("small-cnn", (1, 8, 12)),
        ("small-cnn", (64,)),
        ("small-cnn", (1, 2, 2)),
    ],
    ids=str,
)
def test_a_model_that_does_not_fit_the_data_is_refused_with_the_shape(name, shape):
    with pytest.raises(ValueError, match=rf"model .*\({', '.join(map(str, shape))},?\)"):
        make_model(name, shape, 10, 0)


def test_a_model_that_fails_without_a_word_is_refused_with_the_kind_of_its_error():
    def fail(shape, classes):
        raise RuntimeError

    with pytest.raises(
        ValueError, match=r"model must fit samples of shape \(4,\), .*RuntimeError$"
    ):
        make_model(fail, (4,), 2, 0)


def test_a_model_that_returns_more_than_logits_is_refused():
    class WithFeatures(nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    message = r"model must return logits of shape \(batch, 2\), got a tuple for a batch of 2"
    with pytest.raises(ValueError, match=message):
        make_model(lambda shape, classes: WithFeatures(shape[0], classes), (4,), 2, 0)


def engine(module, mode):
    torch.manual_seed(0)
    x, y = torch.randn(20, 3), torch.arange(20) % 2
    run = Run(0, [np.arange(7), np.arange(7, 16)], np.arange(16, 20), np.array([1, 2]))
    return Engine([module], x, y, [run], Sgd(0.1, 0.9, 4), Options(mode=mode, slots=8))


class Own(nn.Module):
    """A user's own module, with a parameter outside of layers and one that is never used."""

    def __init__(self, features, classes):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.spare = nn.Parameter(torch.ones(2))
        self.norm = nn.LayerNorm(features)
        self.out = nn.Linear(features, classes)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(x) * self.scale))


@pytest.mark.parametrize("mode", ["together", "one-by-one"])
def test_a_users_own_module_learns_in_the_engine(mode):
    learner = engine(make_model(lambda shape, classes: Own(shape[0], classes), (3,), 2, 0), mode)
    before, start = learner.losses([0], np.array([[0, 1]])), learner.models.clone()
    for round in range(30):
        assert learner.train(round, np.array([[0, 1]]), np.ones((1, 2), dtype=bool)).valid.all()
    assert (learner.losses([0], np.array([[0, 1]])) < before).all()
    spare = slice(3, 5)  # after scale
    assert torch.equal(learner.models[:, spare], start[:, spare])


@pytest.mark.parametrize("mode", ["together", "one-by-one"])
def test_a_module_given_to_the_engine_directly_is_refused_for_its_running_statistics_too(mode):
    with pytest.raises(ValueError, match="BatchNorm1d at '0'"):
        engine(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)), mode)


@pytest.mark.parametrize("mode", ["together", "one-by-one"])
def test_a_module_with_dropout_is_tested_without_dropping(mode):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 40), nn.ReLU(), nn.Dropout(0.5), nn.Linear(40, 2))
    learner = engine(module, mode)
    x, y = learner.x[16:], learner.y[16:]
    expected = nn.functional.cross_entropy(deepcopy(module).eval()(x), y).item()
    assert learner.evaluate().loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("mode", ["together", "one-by-one"])
def test_a_module_with_dropout_is_trained(mode):
    torch.manual_seed(0)
    learner = engine(nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)), mode)
    assert learner.train(0, np.array([[0, 1]]), np.ones((1, 2), dtype=bool)).valid.all()
