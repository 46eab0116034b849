"""A model as one row of numbers: many models are a matrix, an update of all of them is one operation."""

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call

Forward = Callable[[Tensor, Tensor], Tensor]  # (weights [P], x [B, ...]) -> logits [B, classes]


def flat_weights(module: nn.Module) -> Tensor:
    """Return all parameters of a module as one vector [P]."""
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def views(flat: Tensor, module: nn.Module) -> dict[str, Tensor]:
    """Return a vector [P] as the module's named parameters, without a copy."""
    shapes = {name: p.shape for name, p in module.named_parameters()}
    parts = torch.split(flat, [prod(shape) for shape in shapes.values()])
    return {name: part.view(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}


def forward_of(module: nn.Module) -> Forward:
    """Return the module as a function of its weights."""
    return lambda flat, x: functional_call(module, views(flat, module), (x,))
