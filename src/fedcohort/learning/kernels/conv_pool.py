"""A convolution with max pooling in one kernel for a GPU, in Triton.

Pooling keeps one number in four, or fewer. Here a program computes the convolution at each
position of its pooling windows in turn and keeps the largest, so that neither the patches nor the
full convolution are ever written to memory. Images are [B, H, W, C]: the numbers of one row of a
patch then lie side by side.

Two kinds of model batch: every operation takes S models, each with its own images [S, B, ...], or
all with the same images (a stride of 0).
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
from typing import Any

import torch
import triton
from torch import Tensor
from torch.library import custom_op
from torch.nn.functional import conv2d, pad

from fedcohort.learning.kernels.batching import register_batching
from fedcohort.learning.kernels.conv_pool_kernels import (
    conv_pool_kernel,
    conv_pool_slope_kernel,
)
from fedcohort.learning.kernels.pooling import max_pool
from fedcohort.learning.models import pooled_side

# Pixels and warps per program: the fastest of a grid on one H200.
CONV_POOL_TILE = (64, 4)
CONV_POOL_SLOPE_TILE = (32, 4)
CHUNK = 32  # most numbers of a patch that are multiplied at once
CHANNEL_MULTIPLE = 4  # channels that are loaded at once
PARTIAL_SUMS = 1024  # programs that share the gradients of all models


@custom_op("fedcohort::conv_pool", mutates_args=())
def _conv_pool(
    x: Tensor, kernel: Tensor, side: int, size: int, stride: int, ceil: bool
) -> tuple[Tensor, Tensor]:
    x, model_stride = _plain_images(x)
    kernel, chunk, chunks = _in_chunks(kernel)
    out, winner = _empty_pooled(x, kernel, side, size, stride, ceil)
    models, _, height, width, channels = x.shape
    filters = kernel.shape[2]
    pixels = out.shape[1:4].numel()
    tile, warps = CONV_POOL_TILE
    sides = (height, width, height - side + 1, width - side + 1, *out.shape[2:4])
    patch = (channels, side * channels, side * side * channels, chunk, chunks)
    conv_pool_kernel[triton.cdiv(pixels, tile), models](
        x,
        kernel,
        out,
        winner,
        pixels,
        model_stride,
        *sides,
        *patch,
        filters,
        _wide(filters),
        size,
        stride,
        tile,
        _precision(x),
        num_warps=warps,
    )
    return out, winner


@custom_op("fedcohort::conv_pool_slope", mutates_args=())
def _conv_pool_slope(
    x: Tensor, slope: Tensor, winner: Tensor, side: int, size: int, stride: int
) -> Tensor:
    x, model_stride = _plain_images(x)
    models, _, height, width, channels = x.shape
    slope = slope.contiguous()
    winner = winner.contiguous()
    filters = slope.shape[4]
    numbers = side * side * channels
    rows = _wide(numbers)
    splits = max(1, PARTIAL_SUMS // models)
    into = torch.empty((models, splits, rows, filters), device=x.device)
    tile, warps = CONV_POOL_SLOPE_TILE
    sides = (height, width, height - side + 1, width - side + 1, *slope.shape[2:4])
    conv_pool_slope_kernel[splits, models](
        x,
        slope,
        winner,
        into,
        slope.shape[1:4].numel(),
        model_stride,
        *sides,
        channels,
        side * channels,
        numbers,
        rows,
        filters,
        _wide(filters),
        size,
        stride,
        tile,
        splits,
        _precision(x),
        num_warps=warps,
    )
    return into.sum(dim=1)[:, :numbers].to(x.dtype)


@custom_op("fedcohort::conv_then_pool", mutates_args=())
def _conv_then_pool(x: Tensor, weight: Tensor, size: int, stride: int, ceil: bool) -> Tensor:
    images = x.contiguous().permute(0, 1, 4, 2, 3)  # channels last in memory, which is faster
    kernels = weight.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
    parts = []
    for own_images, own_kernels in zip(images, kernels, strict=True):
        parts.append(conv2d(own_images, own_kernels).permute(0, 2, 3, 1))
    convolved = torch.stack(parts)
    pooled = max_pool(convolved.flatten(0, 1), size, stride, ceil)
    out: Tensor = pooled.unflatten(0, convolved.shape[:2])
    return out


@_conv_then_pool.register_fake
def _empty_then_pooled(x: Tensor, weight: Tensor, size: int, stride: int, ceil: bool) -> Tensor:
    kernel = weight.flatten(2).transpose(1, 2)
    pooled: Tensor = _empty_pooled(x, kernel, weight.shape[3], size, stride, ceil)[0]
    return pooled


@_conv_pool.register_fake
def _empty_pooled(
    x: Tensor, kernel: Tensor, side: int, size: int, stride: int, ceil: bool
) -> tuple[Tensor, Tensor]:
    models, images, height, width, _ = x.shape
    rows = pooled_side(height - side + 1, size, stride, ceil)
    columns = pooled_side(width - side + 1, size, stride, ceil)
    out = x.new_empty((models, images, rows, columns, kernel.shape[2]))
    return out, torch.empty_like(out, dtype=torch.int8)


@_conv_pool_slope.register_fake
def _empty_slope(
    x: Tensor, slope: Tensor, winner: Tensor, side: int, size: int, stride: int
) -> Tensor:
    return x.new_empty((x.shape[0], side * side * x.shape[4], slope.shape[4]))


for _operation in (_conv_pool, _conv_pool_slope, _conv_then_pool):
    register_batching(_operation)


def _plain_images(x: Tensor) -> tuple[Tensor, int]:
    """Return images [S, B, H, W, C] in plain order and the distance between models' images."""
    if x.shape[0] > 1 and x.stride(0) == 0:  # all models have the same images
        return x[:1].contiguous().expand(x.shape), 0
    x = x.contiguous()
    return x, x.stride(0)


def _in_chunks(kernel: Tensor) -> tuple[Tensor, int, int]:
    """Return kernels [S, n, F] with n filled up to a number of chunks, chunk and number."""
    length = kernel.shape[1]
    chunk = min(CHUNK, _wide(length))
    chunks = triton.cdiv(length, chunk)
    missing = chunk * chunks - length
    return pad(kernel, (0, 0, 0, missing)).contiguous(), chunk, chunks


def _wide(length: int) -> int:
    """Return the next power of two, at least 16: the smallest side of a matrix product."""
    wide: int = triton.next_power_of_2(length)
    return max(16, wide)


def _precision(x: Tensor) -> str:
    """Return how matrix products of float32 round, as PyTorch is told to."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee"


class _ConvPoolSlope(torch.autograd.Function):
    """The backward pass; it cannot be differentiated again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _conv_pool_slope(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)


class _ConvPool(torch.autograd.Function):
    """Differentiable with respect to the kernels, not to the images."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _conv_pool(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        x, _, ctx.side, ctx.size, ctx.stride, _ = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(x, output[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Any) -> Any:
        x, winner = ctx.saved_tensors
        gradient = _ConvPoolSlope.apply(x, slope, winner, ctx.side, ctx.size, ctx.stride)
        return None, gradient, None, None, None, None


def conv_pool(
    x: Tensor, weight: Tensor, bias: Tensor | None, size: int, stride: int, ceil: bool = False
) -> Tensor:
    """Return the maxima of square windows of a convolution of images.

    The result can be differentiated with respect to weight and bias.

    Args:
        x: Images [B, C, H, W], fast if channels are last in memory.
        weight: Square kernels of the convolution [F, C, n, n].
        bias: Bias of each filter [F], or None.
        size: Side of the pooling windows.
        stride: Distance between the windows.
        ceil: Whether a last window may reach over the border, as `ceil_mode` of `nn.MaxPool2d`.

    Returns:
        Maxima [B, F, H', W'].
    """
    filters, channels, side, _ = weight.shape
    missing = (0, -channels % CHANNEL_MULTIPLE)
    images = pad(x.permute(0, 2, 3, 1), missing).contiguous()
    kernel = pad(weight.permute(0, 2, 3, 1), missing).reshape(filters, -1).T
    out: Tensor = _ConvPool.apply(images[None], kernel[None], side, size, stride, ceil)[0][0]
    if bias is not None:  # the same for a whole window, so it may come after the maximum
        out = out + bias
    return out.permute(0, 3, 1, 2)


def conv_then_pool(
    x: Tensor, weight: Tensor, bias: Tensor | None, size: int, stride: int, ceil: bool = False
) -> Tensor:
    """Return what `conv_pool` does, by PyTorch's convolution of one model after the other.

    That is faster where patches are long and the images of each model are many. The result cannot
    be differentiated.
    """
    images = x.permute(0, 2, 3, 1)
    out: Tensor = _conv_then_pool(images[None], weight[None], size, stride, ceil)[0]
    if bias is not None:
        out = out + bias
    return out.permute(0, 3, 1, 2)
