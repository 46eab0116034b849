"""Kernels of our own for a GPU: what the compiler makes of these operations spends most of its time on computing places.

Each program works on some pixels, on all channels of each, so that places are computed once per pixel. Images are [N, H, W, C],
patches are taken from [N, C, H, W]. The operations know batching and differentiation (`vmap`, `grad`), not the compiler's own
tracer of Python: trace them away first (`local.compiled`).
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op
from torch.nn.functional import fold

from fedcohort.learning.layers import ALIGNED
from fedcohort.learning.models import pooled_side

# numbers and warps per program: the fastest of a grid on one H200
MAXIMA, WINNERS, PATCHES = (1024, 4), (2048, 4), (4096, 1)


@triton.jit
def _maxima(
    x, out, winner, pixels, H, W, OH, OW,
    C: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr, STRIDE: tl.constexpr, PIXELS: tl.constexpr, OVER: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, WIDE)[None, :]
    inside = (pixel < pixels)[:, None] & (channel < C)
    image, row, column = pixel // (OH * OW), (pixel // OW) % OH, pixel % OW
    corner = ((image.to(tl.int64) * H + row * STRIDE) * W + column * STRIDE) * C
    best = tl.full((PIXELS, WIDE), float("-inf"), tl.float32)
    at = tl.zeros((PIXELS, WIDE), tl.int8)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            held = inside
            if OVER:  # windows may reach over the border
                held &= ((row * STRIDE + i < H) & (column * STRIDE + j < W))[:, None]
            value = tl.load(
                x + corner[:, None] + (i * W + j) * C + channel, held, float("-inf")
            ).to(tl.float32)
            better = (value > best) | (value != value)  # what is not a number is passed on
            best = tl.where(better, value, best)
            at = tl.where(better, i * K + j, at).to(tl.int8)
    place = pixel.to(tl.int64)[:, None] * C + channel
    tl.store(out + place, best.to(out.dtype.element_ty), inside)
    tl.store(winner + place, at, inside)


@triton.jit
def _to_winners(
    slope, winner, into, pixels, H, W, OH, OW,
    C: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr, STRIDE: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, WIDE)[None, :]
    inside = (pixel < pixels)[:, None] & (channel < C)
    image, row, column = pixel // (H * W), (pixel // W) % H, pixel % W
    total = tl.zeros((PIXELS, WIDE), tl.float32)
    for a in tl.static_range((K + STRIDE - 1) // STRIDE):
        for b in tl.static_range((K + STRIDE - 1) // STRIDE):
            up, left = row // STRIDE - a, column // STRIDE - b  # a window that may hold this pixel
            i, j = row - up * STRIDE, column - left * STRIDE  # and where in it
            held = (up >= 0) & (up < OH) & (left >= 0) & (left < OW) & (i < K) & (j < K)
            place = ((image.to(tl.int64) * OH + up) * OW + left)[:, None] * C + channel
            won = (
                tl.load(winner + place, held[:, None] & inside, -1).to(tl.int32)
                == (i * K + j)[:, None]
            )
            total += tl.where(
                won, tl.load(slope + place, held[:, None] & inside, 0.0).to(tl.float32), 0.0
            )
    tl.store(
        into + pixel.to(tl.int64)[:, None] * C + channel, total.to(into.dtype.element_ty), inside
    )


@triton.jit
def _to_patches(
    x, out, pixels, C, H, W, OH, OW, DOWN, ACROSS,
    KH: tl.constexpr, KW: tl.constexpr, LENGTH: tl.constexpr, ROW: tl.constexpr, WIDE: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    k = tl.arange(0, WIDE)
    image, row, column = pixel // (OH * OW), (pixel // OW) % OH, pixel % OW
    corner = (image.to(tl.int64) * C * H + row * DOWN) * W + column * ACROSS
    within = (k // (KH * KW) * H + k // KW % KH) * W + k % KW
    inside = (pixel < pixels)[:, None] & (k < LENGTH)[None, :]
    value = tl.load(x + corner[:, None] + within[None, :], inside, 0.0)
    value = tl.where((k == LENGTH)[None, :], 1.0, value)
    place = pixel.to(tl.int64)[:, None] * ROW + k[None, :]
    tl.store(
        out + place, value.to(out.dtype.element_ty), (pixel < pixels)[:, None] & (k < ROW)[None, :]
    )


@custom_op("fedcohort::max_pool", mutates_args=())
def _max_pool(x: Tensor, size: int, stride: int, ceil: bool) -> tuple[Tensor, Tensor]:
    x = x.contiguous()
    out, winner = _like_pooled(x, size, stride, ceil)
    count, channels = out.shape[:3].numel(), x.shape[3]
    wide, pixels = _tile(channels, MAXIMA[0])
    numbers = (count, *x.shape[1:3], *out.shape[1:3], channels, wide, size, stride, pixels, ceil)
    _maxima[triton.cdiv(count, pixels),](x, out, winner, *numbers, num_warps=MAXIMA[1])
    return out, winner


@custom_op("fedcohort::max_pool_slope", mutates_args=())
def _max_pool_slope(
    slope: Tensor, winner: Tensor, height: int, width: int, size: int, stride: int
) -> Tensor:
    slope, winner = slope.contiguous(), winner.contiguous()
    into: Tensor = _like_images(slope, winner, height, width, size, stride)
    count, channels = into.shape[:3].numel(), slope.shape[3]
    wide, pixels = _tile(channels, WINNERS[0])
    numbers = (count, height, width, *slope.shape[1:3], channels, wide, size, stride, pixels)
    _to_winners[triton.cdiv(count, pixels),](slope, winner, into, *numbers, num_warps=WINNERS[1])
    return into


@custom_op("fedcohort::patches", mutates_args=())
def _patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    x = x.contiguous()
    out: Tensor = _like_patches(x, height, width, down, across)
    count, row, length = out.shape[:3].numel(), out.shape[3], x.shape[1] * height * width
    wide, pixels = _tile(row, PATCHES[0])
    numbers = (
        count,
        *x.shape[1:],
        *out.shape[1:3],
        down,
        across,
        height,
        width,
        length,
        row,
        wide,
        pixels,
    )
    _to_patches[triton.cdiv(count, pixels),](x, out, *numbers, num_warps=PATCHES[1])
    return out


def _tile(row: int, numbers: int) -> tuple[int, int]:
    """Return the length of a program's rows and how many it works on: powers of two, not many more numbers than asked for."""
    wide: int = triton.next_power_of_2(row)
    return wide, max(1, numbers // wide)


@_max_pool.register_fake
def _like_pooled(x: Tensor, size: int, stride: int, ceil: bool) -> tuple[Tensor, Tensor]:
    images, height, width, channels = x.shape
    rows, columns = (pooled_side(side, size, stride, ceil) for side in (height, width))
    out = x.new_empty((images, rows, columns, channels))
    return out, torch.empty_like(out, dtype=torch.int8)


@_max_pool_slope.register_fake
def _like_images(
    slope: Tensor, winner: Tensor, height: int, width: int, size: int, stride: int
) -> Tensor:
    return slope.new_empty((slope.shape[0], height, width, slope.shape[3]))


@_patches.register_fake
def _like_patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    images, channels, rows, columns = x.shape
    row = channels * height * width + 1
    return x.new_empty(
        (images, (rows - height) // down + 1, (columns - width) // across + 1, row + -row % ALIGNED)
    )


def _over_images(operation: Any) -> None:
    """Let an operation on images batch: a batch of batches of images is one batch."""

    def rule(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        tensors = [
            arg.expand(info.batch_size, *arg.shape) if dim is None else arg.movedim(dim, 0)
            for arg, dim in zip(args, dims, strict=True)
            if isinstance(arg, Tensor)
        ]
        made = operation(*(tensor.flatten(0, 1) for tensor in tensors), *args[len(tensors) :])
        many = tuple(
            one.unflatten(0, tensors[0].shape[:2])
            for one in (made if isinstance(made, tuple) else (made,))
        )
        return (many, (0,) * len(many)) if isinstance(made, tuple) else (many[0], 0)

    operation.register_vmap(rule)


for each in (_max_pool, _max_pool_slope, _patches):
    _over_images(each)


class _MaxPoolSlope(torch.autograd.Function):
    """The backward pass, of which there are no further slopes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _max_pool_slope(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)


class _MaxPool(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _max_pool(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        x, *ctx.window, _ = inputs
        ctx.image = x.shape[1:3]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Any) -> Any:
        return (
            _MaxPoolSlope.apply(slope, *ctx.saved_tensors, *ctx.image, *ctx.window),
            None,
            None,
            None,
        )


class _Patches(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> Any:
        return _patches(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, *ctx.window = inputs
        ctx.channels, *ctx.image = x.shape[1:]

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        height, width, down, across = ctx.window
        columns = slope[..., : ctx.channels * height * width].flatten(1, 2).transpose(1, 2)
        return (
            fold(columns, ctx.image, (height, width), stride=(down, across)),
            None,
            None,
            None,
            None,
        )


def max_pool(x: Tensor, size: int, stride: int, ceil: bool = False) -> Tensor:
    """Return the maxima [N, OH, OW, C] of square windows of images [N, H, W, C]; `ceil` as in `nn.MaxPool2d`."""
    out: Tensor = _MaxPool.apply(x, size, stride, ceil)[0]
    return out


def patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    """Return the patches [N, OH, OW, n] of images [N, C, H, W], each a row (channel, row, column), then 1, then zeros."""
    out: Tensor = _Patches.apply(x, height, width, down, across)
    return out
