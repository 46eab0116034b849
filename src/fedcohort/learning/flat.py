"""A model as one row of numbers: many models are a matrix, an update of all of them is one operation."""

from collections.abc import Callable
from copy import deepcopy
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call

ALIGNED = 8  # numbers: on a GPU the fast matrix products want rows of a multiple of this
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


class MatmulConv2d(nn.Module):
    """A convolution written as one matrix product.

    Over many models at once a convolution becomes a grouped one, which libraries run slowly; a matrix product becomes a batched
    one, which they run fast. Takes over the parameters of the layer it stands for.
    """

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.bias = conv.weight, conv.bias
        self.stride, self.padding = conv.stride, conv.padding

    def forward(self, x: Tensor) -> Tensor:
        """Return what the convolution returns, [B, C, H, W]."""
        filters, channels, height, width = self.weight.shape
        (down, across), (vertical, horizontal) = self.stride, (int(self.padding[0]), int(self.padding[1]))
        x = nn.functional.pad(x, (horizontal, horizontal, vertical, vertical)).permute(0, 2, 3, 1)
        rows, columns = (x.shape[1] - height) // down + 1, (x.shape[2] - width) // across + 1
        kernel = self.weight.permute(0, 2, 3, 1).reshape(filters, height, width * channels)
        spare = -(width * channels) % ALIGNED if x.is_cuda else 0
        # patches row by row, then column by column: few pieces to join, which compilers fuse, and the backward pass is a sum
        strips = torch.cat([x[:, :, j : j + across * (columns - 1) + 1 : across] for j in range(width)], dim=-1)
        strips, kernel = nn.functional.pad(strips, (0, spare)), nn.functional.pad(kernel, (0, spare))
        patches = torch.cat([strips[:, i : i + down * (rows - 1) + 1 : down] for i in range(height)], dim=-1)
        out = patches.flatten(0, 2) @ kernel.flatten(1).T
        if self.bias is not None:
            out = out + self.bias
        return out.view(-1, rows, columns, filters).permute(0, 3, 1, 2)


def with_matmul_convolutions(module: nn.Module) -> nn.Module:
    """Return a copy whose plain convolutions are matrix products; its parameters have the same names and shapes."""
    copy = deepcopy(module)
    if isinstance(copy, nn.Conv2d):
        return MatmulConv2d(copy) if _is_plain(copy) else copy
    for layer in list(copy.modules()):
        for name, child in layer.named_children():
            if isinstance(child, nn.Conv2d) and _is_plain(child):
                setattr(layer, name, MatmulConv2d(child))
    return copy


def _is_plain(conv: nn.Conv2d) -> bool:
    """Return whether `MatmulConv2d` computes what this layer does: a subclass may do anything."""
    zeros = conv.padding_mode == "zeros" and not isinstance(conv.padding, str)
    return type(conv) is nn.Conv2d and conv.groups == 1 and conv.dilation == (1, 1) and zeros
