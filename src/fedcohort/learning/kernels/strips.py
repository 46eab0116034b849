"""Strips of images [N, H, W, C]: some pixels side by side, as a row of a matrix."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from fedcohort.learning.kernels.batching import register_batching

STRIPS_TILE = (2048, 4)  # numbers and warps per program


# Strips `out` [N, H, OW, KW * C] of images x [N, H, W, C]: the numbers of KW pixels side by side.
# Memory holds them side by side too, so this copies pieces of it.
@triton.jit
def _strips_kernel(
    x,
    out,
    count,
    W: tl.constexpr,
    OW: tl.constexpr,
    C: tl.constexpr,
    KW: tl.constexpr,
    NUMBERS: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    strip = at // (KW * C)
    source = (strip // OW * W + strip % OW) * C + at % (KW * C)
    tl.store(out + at, tl.load(x + source, at < count), at < count)


# Gradient `into` [N, H, W, C] of the images: each pixel adds up the gradients `slope`
# [N, H, OW, KW * C] of the strips that it is in.
@triton.jit
def _strips_slope_kernel(
    slope,
    into,
    count,
    W: tl.constexpr,
    OW: tl.constexpr,
    C: tl.constexpr,
    KW: tl.constexpr,
    NUMBERS: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    channel = at % C
    column = at // C % W
    row = at // (C * W)
    total = tl.zeros((NUMBERS,), tl.float32)
    for j in tl.static_range(KW):
        left = column - j  # the strip in which this pixel is number j
        exists = (at < count) & (left >= 0) & (left < OW)
        source = (row * OW + left) * (KW * C) + j * C + channel
        total += tl.load(slope + source, exists, 0.0).to(tl.float32)
    tl.store(into + at, total.to(into.dtype.element_ty), at < count)


@custom_op("fedcohort::strips", mutates_args=())
def _strips(x: Tensor, width: int) -> Tensor:
    x = x.contiguous()
    out: Tensor = _empty_strips(x, width)
    numbers, warps = STRIPS_TILE
    sizes = (x.shape[2], out.shape[2], x.shape[3], width, numbers)
    count = out.numel()
    _strips_kernel[triton.cdiv(count, numbers),](x, out, count, *sizes, num_warps=warps)
    return out


@custom_op("fedcohort::strips_slope", mutates_args=())
def _strips_slope(slope: Tensor, width: int) -> Tensor:
    slope = slope.contiguous()
    into: Tensor = _empty_stripped(slope, width)
    numbers, warps = STRIPS_TILE
    sizes = (into.shape[2], slope.shape[2], into.shape[3], width, numbers)
    count = into.numel()
    _strips_slope_kernel[triton.cdiv(count, numbers),](slope, into, count, *sizes, num_warps=warps)
    return into


@_strips.register_fake
def _empty_strips(x: Tensor, width: int) -> Tensor:
    images, rows, columns, channels = x.shape
    return x.new_empty((images, rows, columns - width + 1, width * channels))


@_strips_slope.register_fake
def _empty_stripped(slope: Tensor, width: int) -> Tensor:
    images, rows, strips, numbers = slope.shape
    return slope.new_empty((images, rows, strips + width - 1, numbers // width))


register_batching(_strips)
register_batching(_strips_slope)


class _StripsSlope(torch.autograd.Function):
    """The backward pass of strips; it cannot be differentiated again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _strips_slope(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)


class _Strips(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _strips(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.width = inputs

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        return _StripsSlope.apply(slope, ctx.width), None


def strips(x: Tensor, width: int) -> Tensor:
    """Return the strips of images: the numbers of some pixels side by side, each as a row.

    Args:
        x: Images [N, H, W, C].
        width: Number of pixels of a strip.

    Returns:
        Strips [N, H, W - width + 1, width * C].
    """
    out: Tensor = _Strips.apply(x, width)
    return out
