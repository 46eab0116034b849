"""Layers that compute what PyTorch's do, written so that many models at once are fast."""

from copy import deepcopy
from importlib.util import find_spec

import torch
from torch import Tensor, nn

ALIGNED = 8  # numbers: on a GPU the fast matrix products want rows of a multiple of this


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
        vertical, horizontal = int(self.padding[0]), int(self.padding[1])
        x = nn.functional.pad(x, (horizontal, horizontal, vertical, vertical))
        filters, channels, _, width = self.weight.shape
        out = self._by_patches(x) if width * channels < filters else self._by_strips(x)
        return out.permute(0, 3, 1, 2)

    def _by_patches(self, x: Tensor) -> Tensor:
        """Return [B, H, W, F] as patches times kernels: right where patches are small, as those of raw images are."""
        filters, _, height, width = self.weight.shape
        patches = _patches(x, height, width, *self.stride)
        kernel = self.weight.reshape(filters, -1)
        if self.bias is not None:  # every patch ends in a 1: the product adds the bias
            kernel = torch.cat([kernel, self.bias[:, None]], dim=1)
        kernel = nn.functional.pad(kernel, (0, patches.shape[3] - kernel.shape[1]))
        return (patches.flatten(0, 2) @ kernel.T).view(*patches.shape[:3], filters)

    def _by_strips(self, x: Tensor) -> Tensor:
        """Return the same as strips, one row high, times the rows of kernels, added up: far less memory than whole patches."""
        filters, channels, height, width = self.weight.shape
        (down, across), x = self.stride, x.permute(0, 2, 3, 1)
        rows, columns = (x.shape[1] - height) // down + 1, (x.shape[2] - width) // across + 1
        strips = torch.cat(
            [x[:, :, j : j + across * (columns - 1) + 1 : across] for j in range(width)], dim=-1
        )
        kernel = self.weight.permute(3, 1, 2, 0).reshape(width * channels, height * filters)
        spare = -(width * channels) % ALIGNED if x.is_cuda else 0
        strips, kernel = (
            nn.functional.pad(strips, (0, spare)),
            nn.functional.pad(kernel, (0, 0, 0, spare)),
        )
        by_row = (strips.flatten(0, 2) @ kernel).view(*strips.shape[:3], height * filters)
        parts = [
            by_row[:, i : i + down * (rows - 1) + 1 : down, :, i * filters : (i + 1) * filters]
            for i in range(height)
        ]
        return sum(parts[1:], parts[0]) if self.bias is None else sum(parts, self.bias)


class ChannelsLastMaxPool2d(nn.Module):
    """What `nn.MaxPool2d` with square windows and no padding computes, on a GPU."""

    def __init__(self, size: int, stride: int, ceil: bool = False) -> None:
        super().__init__()
        self.size, self.stride, self.ceil = size, stride, ceil

    def forward(self, x: Tensor) -> Tensor:
        """Return the pooled images [B, C, H, W]."""
        from fedcohort.learning.kernels import max_pool

        return max_pool(x.permute(0, 2, 3, 1), self.size, self.stride, self.ceil).permute(
            0, 3, 1, 2
        )


def _patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    """Return the patches [B, H, W, n] of images [B, C, H, W], each a row that ends in a 1 and, on a GPU, some zeros."""
    if has_kernels(x):
        from fedcohort.learning.kernels import patches

        return patches(x, height, width, down, across)
    rows = x.unfold(2, height, down).unfold(3, width, across).permute(0, 2, 3, 1, 4, 5).flatten(3)
    return nn.functional.pad(rows, (0, 1), value=1.0)


def has_kernels(x: Tensor) -> bool:
    """Return whether our kernels can work on a tensor: on a GPU, not in double, with Triton, which PyTorch for GPUs brings."""
    return x.is_cuda and x.dtype != torch.float64 and find_spec("triton") is not None


def for_many_models(module: nn.Module) -> nn.Module:
    """Return a copy that computes the same; its parameters have the same names and shapes."""
    copy = deepcopy(module)
    kernels = any(has_kernels(parameter) for parameter in copy.parameters())
    if (other := _other(copy, kernels)) is not None:
        return other
    for layer in list(copy.modules()):
        for name, child in layer.named_children():
            if (other := _other(child, kernels)) is not None:
                setattr(layer, name, other)
    return copy


def _other(layer: nn.Module, kernels: bool) -> nn.Module | None:
    """Return what stands for a layer: only for the plain ones, for a subclass may do anything."""
    if (
        type(layer) is nn.Conv2d
        and layer.groups == 1
        and layer.dilation == (1, 1)
        and layer.padding_mode == "zeros"
    ):
        return None if isinstance(layer.padding, str) else MatmulConv2d(layer)
    if type(layer) is nn.MaxPool2d and kernels:
        size, stride, places = layer.kernel_size, layer.stride, torch.iinfo(torch.int8).max
        plain = layer.padding == 0 and layer.dilation == 1 and not layer.return_indices
        if plain and isinstance(size, int) and isinstance(stride, int) and size * size <= places:
            return ChannelsLastMaxPool2d(size, stride, layer.ceil_mode)
    return None
