import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedcohort.learning.sgd import Sgd, make_batched_step
from fedcohort.learning.weights import flat_weights, named_weights

MODELS = 3
BATCH = 4
CLASSES = 3


def mlp():
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, CLASSES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": float("nan")}, "rate must be .* above 0, got nan"),
        ({"momentum": 5.0}, "momentum must be between 0.0 and 1.0, got 5.0"),
        ({"batch_size": 0}, "batch_size must be a whole number at least 1, got 0"),
    ],
)
def test_values_out_of_bounds_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        Sgd(**options)


def test_the_fedprox_step_follows_the_gradient_of_the_whole_objective():
    torch.manual_seed(2)
    module = mlp()
    size = flat_weights(module).numel()
    weights = torch.randn(MODELS, size)
    anchor = torch.randn(MODELS, size)
    mu = torch.tensor([0.0, 0.7, 5.0])
    x = torch.randn(20, 5)
    y = torch.randint(CLASSES, (20,))
    samples = torch.randint(20, (MODELS, BATCH))
    samples[1, 2:] = -1  # a short batch
    moved = weights.clone()
    velocity = torch.zeros_like(weights)
    loss = torch.full((MODELS,), 2.0)

    step = make_batched_step(module, Sgd(0.1, 0.9, BATCH))
    step(moved, torch.empty(MODELS, 0), velocity, anchor, mu, loss, x, y, samples)

    for model in range(MODELS):
        free = weights[model].clone().requires_grad_(True)
        own = samples[model][samples[model] >= 0]
        logits = torch.func.functional_call(module, named_weights(free, module), (x[own],))
        fit = cross_entropy(logits, y[own])
        objective = fit + mu[model] / 2 * ((free - anchor[model]) ** 2).sum()
        (gradient,) = torch.autograd.grad(objective, free)
        torch.testing.assert_close(velocity[model], gradient)
        torch.testing.assert_close(moved[model], weights[model] - 0.1 * gradient)
        # The step reports the loss alone, without FedProx's term.
        torch.testing.assert_close(loss[model], 2.0 + fit.detach())
