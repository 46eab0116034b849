"""One model as one vector of numbers.

Many models then form a matrix [models, P], and one operation updates all of them.
"""

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call

Forward = Callable[[Tensor, Tensor], Tensor]  # (weights [P], x [B, ...]) -> logits [B, classes]


def flat_weights(module: nn.Module) -> Tensor:
    """Return all parameters of a module as one vector [P], a copy."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


def named_weights(vector: Tensor, module: nn.Module) -> dict[str, Tensor]:
    """Return a vector [P] as the module's named parameters, without a copy."""
    shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
    parts = torch.split(vector, [prod(shape) for shape in shapes.values()])

    named = {}
    for part, (name, shape) in zip(parts, shapes.items(), strict=True):
        named[name] = part.view(shape)
    return named


def make_forward(module: nn.Module) -> Forward:
    """Return the module's forward pass as a function of its weights.

    A weight that the module uses in two places, in a shared layer or tied, gets its value in
    both.
    """
    parameter_at = _parameter_paths(module)

    def forward(vector: Tensor, x: Tensor) -> Tensor:
        weights = named_weights(vector, module)
        weight_at = {path: weights[name] for path, name in parameter_at.items()}
        logits: Tensor = functional_call(module, weight_at, (x,), tie_weights=False)
        return logits

    return forward


def _parameter_paths(module: nn.Module) -> dict[str, str]:
    """Return, for every path to a parameter, the one name that `named_parameters` gives it.

    `named_modules` yields a layer that is used twice only once. That is right here:
    `functional_call` would replace its weights twice and restore them once.
    """
    names = {parameter: name for name, parameter in module.named_parameters()}
    paths = {}
    for layer_path, layer in module.named_modules():
        own = layer.named_parameters(recurse=False, remove_duplicate=False)
        for own_name, parameter in own:
            path = f"{layer_path}.{own_name}".lstrip(".")
            paths[path] = names[parameter]
    return paths
