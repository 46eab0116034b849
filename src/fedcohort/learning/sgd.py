"""The local optimiser: SGD with momentum, and one step of it for many models at once.

FedAvg and FedProx differ in one term: the gradient of (mu / 2) |theta - anchor|^2, where the
anchor is the model that the server sent. mu = 0 gives FedAvg.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import grad_and_value, vmap
from torch.nn.functional import cross_entropy

from fedcohort.checks import MAX_COUNT, check_int, check_positive, check_range
from fedcohort.learning.layers import for_many_models
from fedcohort.learning.weights import make_forward

Step = Callable[..., None]
Gradients = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Sgd:
    """The clients' optimiser, SGD whose momentum starts from zero in every round.

    Attributes:
        rate: Learning rate, above 0.
        momentum: Factor of the last step's velocity, between 0 and 1.
        batch_size: Samples per step; the last batch of an epoch may be smaller.

    Raises:
        ValueError: If a value is out of bounds.

    Examples:
        >>> Sgd(rate=0.05)
        Sgd(rate=0.05, momentum=0.9, batch_size=40)
    """

    rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 40

    def __post_init__(self) -> None:
        check_positive("rate", self.rate)
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_int("batch_size", self.batch_size, 1, MAX_COUNT)


def make_batched_step(module: nn.Module, sgd: Sgd) -> Step:
    """Return one SGD step of S models at once, each on a batch of its own.

    The step is a function of weights [S, P], rounded [S, P], velocity [S, P], anchor [S, P],
    mu [S], total_loss [S], all inputs x [N, ...] and labels y [N], and samples [S, B], the
    positions of each model's batch in x and y; -1 for no sample. `rounded` holds the weights in
    the precision of x, in which the passes compute, and is [S, 0] if that is the weights' own.
    The step changes weights, rounded and velocity in place and adds to total_loss the loss before
    the step.

    Args:
        module: Model whose forward pass all models take.
        sgd: Local optimiser.
    """
    return make_step(make_gradients(module), sgd)


def make_gradients(module: nn.Module) -> Gradients:
    """Return the gradients [S, P] and losses [S] of S models at once.

    They are a function of weights [S, P], x [S, B, ...], y [S, B] and counts [S, B], which is 0
    where there is no sample and 1 elsewhere.
    """
    forward = make_forward(for_many_models(module).train())
    trainable = _trainable(module)
    some_frozen = not bool(trainable.all())

    def mean_loss(weights: Tensor, x: Tensor, y: Tensor, counts: Tensor) -> Tensor:
        logits = forward(weights, x).float()
        losses = cross_entropy(logits, y, reduction="none")
        return (losses * counts).sum() / counts.sum().clamp_min(1.0)

    gradients_and_losses = vmap(grad_and_value(mean_loss), randomness="different")

    def gradients(weights: Tensor, x: Tensor, y: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        gradient, loss = gradients_and_losses(weights, x, y, counts)
        if some_frozen:
            gradient = gradient * trainable
        return gradient, loss

    return gradients


def make_step(gradients: Gradients, sgd: Sgd) -> Step:
    """Return the step of `make_batched_step` that follows these gradients."""

    def step(
        weights: Tensor,
        rounded: Tensor,
        velocity: Tensor,
        anchor: Tensor,
        mu: Tensor,
        total_loss: Tensor,
        x: Tensor,
        y: Tensor,
        samples: Tensor,
    ) -> None:
        # Where a batch has no sample, repeat one of the same batch.
        indices = torch.where(samples >= 0, samples, samples[:, :1]).clamp_min(0)
        counts = (samples >= 0).float()
        is_rounded = rounded.shape[1] > 0
        current = rounded if is_rounded else weights
        gradient, loss = gradients(current, x[indices], y[indices], counts)
        total_loss.add_(loss)
        if weights.is_cpu:
            _update_without_memory(weights, velocity, gradient, anchor, mu, sgd)
            return
        proximal = mu[:, None] * (weights - anchor)
        velocity.mul_(sgd.momentum).add_(gradient).add_(proximal)
        weights.sub_(sgd.rate * velocity)
        if is_rounded:
            rounded.copy_(weights)

    return step


def _update_without_memory(
    weights: Tensor, velocity: Tensor, gradient: Tensor, anchor: Tensor, mu: Tensor, sgd: Sgd
) -> None:
    """Take the step in the memory that is there; the gradient is lost.

    New memory for every result costs a CPU more than the arithmetic.
    """
    velocity.mul_(sgd.momentum).add_(gradient)
    if bool(mu.any()):
        torch.sub(weights, anchor, out=gradient)
        velocity.add_(gradient.mul_(mu[:, None]))
    weights.sub_(torch.mul(velocity, sgd.rate, out=gradient))


def _trainable(module: nn.Module) -> Tensor:
    """Return [P], 1 where a parameter is trained and 0 where it is frozen."""
    parts = []
    for parameter in module.parameters():
        value = float(parameter.requires_grad)
        parts.append(torch.full((parameter.numel(),), value, device=parameter.device))
    return torch.cat(parts)
