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
    return {
        name: part.view(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)
    }


def forward_of(module: nn.Module) -> Forward:
    """Return the module as a function of its weights; a layer, or a weight, that is used in two places has one name for all."""
    names = {weight: name for name, weight in module.named_parameters()}
    places = {  # every place once: functional_call would swap that of a layer used twice in and not back
        f"{path}.{own}".lstrip("."): names[weight]
        for path, layer in module.named_modules()
        for own, weight in layer.named_parameters(recurse=False, remove_duplicate=False)
    }

    def forward(flat: Tensor, x: Tensor) -> Tensor:
        parts = views(flat, module)
        logits: Tensor = functional_call(
            module, {place: parts[name] for place, name in places.items()}, (x,), tie_weights=False
        )
        return logits

    return forward
