"""Kernels of our own for a GPU, in Triton.

The compiled versions of these operations spend most of their time on index arithmetic. Here each
program works on some pixels and on all channels of each, so that it computes offsets once per
pixel. Pooling takes images [N, H, W, C], patches are taken from images [N, C, H, W].

The operations support batching and differentiation (`vmap`, `grad`), but not the compiler's
tracer of Python code: trace them away first (`compilation.compile_at_first_call`).
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op
from torch.nn.functional import fold

from fedcohort.learning.layers import ROW_MULTIPLE
from fedcohort.learning.models import pooled_side

# Numbers and warps per program: the fastest of a grid on one H200.
MAX_POOL_TILE = (1024, 4)
MAX_POOL_SLOPE_TILE = (2048, 4)
PATCHES_TILE = (4096, 1)


# Maxima `out` and their positions in the window `winner`, both [N, OH, OW, C], of windows of
# images x [N, H, W, C]. OVER: windows may reach over the border.
@triton.jit
def _max_pool_kernel(
    x,
    out,
    winner,
    pixels,
    H,
    W,
    OH,
    OW,
    C: tl.constexpr,
    WIDE: tl.constexpr,
    K: tl.constexpr,
    STRIDE: tl.constexpr,
    PIXELS: tl.constexpr,
    OVER: tl.constexpr,
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, WIDE)[None, :]
    inside = (pixel < pixels)[:, None] & (channel < C)
    image = pixel // (OH * OW)
    row = (pixel // OW) % OH
    column = pixel % OW
    corner = ((image.to(tl.int64) * H + row * STRIDE) * W + column * STRIDE) * C

    best = tl.full((PIXELS, WIDE), float("-inf"), tl.float32)
    position = tl.zeros((PIXELS, WIDE), tl.int8)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            exists = inside
            if OVER:
                exists &= ((row * STRIDE + i < H) & (column * STRIDE + j < W))[:, None]
            value = tl.load(
                x + corner[:, None] + (i * W + j) * C + channel, exists, float("-inf")
            ).to(tl.float32)
            better = (value > best) | (value != value)  # nan wins, as in PyTorch
            best = tl.where(better, value, best)
            position = tl.where(better, i * K + j, position).to(tl.int8)

    offset = pixel.to(tl.int64)[:, None] * C + channel
    tl.store(out + offset, best.to(out.dtype.element_ty), inside)
    tl.store(winner + offset, position, inside)


# Gradient `into` [N, H, W, C] of the images: each pixel adds up the gradients `slope`
# [N, OH, OW, C] of the windows whose maximum it is.
@triton.jit
def _max_pool_slope_kernel(
    slope,
    winner,
    into,
    pixels,
    H,
    W,
    OH,
    OW,
    C: tl.constexpr,
    WIDE: tl.constexpr,
    K: tl.constexpr,
    STRIDE: tl.constexpr,
    PIXELS: tl.constexpr,
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, WIDE)[None, :]
    inside = (pixel < pixels)[:, None] & (channel < C)
    image = pixel // (H * W)
    row = (pixel // W) % H
    column = pixel % W

    total = tl.zeros((PIXELS, WIDE), tl.float32)
    for a in tl.static_range((K + STRIDE - 1) // STRIDE):
        for b in tl.static_range((K + STRIDE - 1) // STRIDE):
            up = row // STRIDE - a  # a window that may contain this pixel
            left = column // STRIDE - b
            i = row - up * STRIDE  # the pixel's position in that window
            j = column - left * STRIDE
            exists = (up >= 0) & (up < OH) & (left >= 0) & (left < OW) & (i < K) & (j < K)
            offset = ((image.to(tl.int64) * OH + up) * OW + left)[:, None] * C + channel
            position = tl.load(winner + offset, exists[:, None] & inside, -1).to(tl.int32)
            won = position == (i * K + j)[:, None]
            value = tl.load(slope + offset, exists[:, None] & inside, 0.0).to(tl.float32)
            total += tl.where(won, value, 0.0)

    target = pixel.to(tl.int64)[:, None] * C + channel
    tl.store(into + target, total.to(into.dtype.element_ty), inside)


# Patches `out` [N, OH, OW, ROW] of images x [N, C, H, W]: LENGTH numbers, then 1, then zeros.
@triton.jit
def _patches_kernel(
    x,
    out,
    pixels,
    C,
    H,
    W,
    OH,
    OW,
    DOWN,
    ACROSS,
    KH: tl.constexpr,
    KW: tl.constexpr,
    LENGTH: tl.constexpr,
    ROW: tl.constexpr,
    WIDE: tl.constexpr,
    PIXELS: tl.constexpr,
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    k = tl.arange(0, WIDE)
    image = pixel // (OH * OW)
    row = (pixel // OW) % OH
    column = pixel % OW
    corner = (image.to(tl.int64) * C * H + row * DOWN) * W + column * ACROSS
    within = (k // (KH * KW) * H + k // KW % KH) * W + k % KW
    inside = (pixel < pixels)[:, None] & (k < LENGTH)[None, :]

    value = tl.load(x + corner[:, None] + within[None, :], inside, 0.0)
    value = tl.where((k == LENGTH)[None, :], 1.0, value)

    offset = pixel.to(tl.int64)[:, None] * ROW + k[None, :]
    exists = (pixel < pixels)[:, None] & (k < ROW)[None, :]
    tl.store(out + offset, value.to(out.dtype.element_ty), exists)


@custom_op("fedcohort::max_pool", mutates_args=())
def _max_pool(x: Tensor, size: int, stride: int, ceil: bool) -> tuple[Tensor, Tensor]:
    x = x.contiguous()
    out, winner = _empty_pooled(x, size, stride, ceil)
    numbers, warps = MAX_POOL_TILE
    count = out.shape[:3].numel()
    channels = x.shape[3]
    wide, pixels = _tile(channels, numbers)
    sizes = (count, *x.shape[1:3], *out.shape[1:3], channels, wide, size, stride, pixels, ceil)
    _max_pool_kernel[triton.cdiv(count, pixels),](x, out, winner, *sizes, num_warps=warps)
    return out, winner


@custom_op("fedcohort::max_pool_slope", mutates_args=())
def _max_pool_slope(
    slope: Tensor, winner: Tensor, height: int, width: int, size: int, stride: int
) -> Tensor:
    slope = slope.contiguous()
    winner = winner.contiguous()
    into: Tensor = _empty_images(slope, winner, height, width, size, stride)
    numbers, warps = MAX_POOL_SLOPE_TILE
    count = into.shape[:3].numel()
    channels = slope.shape[3]
    wide, pixels = _tile(channels, numbers)
    sizes = (count, height, width, *slope.shape[1:3], channels, wide, size, stride, pixels)
    _max_pool_slope_kernel[triton.cdiv(count, pixels),](
        slope, winner, into, *sizes, num_warps=warps
    )
    return into


@custom_op("fedcohort::patches", mutates_args=())
def _patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    x = x.contiguous()
    out: Tensor = _empty_patches(x, height, width, down, across)
    numbers, warps = PATCHES_TILE
    count = out.shape[:3].numel()
    row = out.shape[3]
    length = x.shape[1] * height * width
    wide, pixels = _tile(row, numbers)
    image_sizes = (count, *x.shape[1:], *out.shape[1:3], down, across)
    patch_sizes = (height, width, length, row, wide, pixels)
    _patches_kernel[triton.cdiv(count, pixels),](
        x, out, *image_sizes, *patch_sizes, num_warps=warps
    )
    return out


def _tile(row: int, numbers: int) -> tuple[int, int]:
    """Return the length of a program's rows, a power of two, and how many it works on."""
    wide: int = triton.next_power_of_2(row)
    return wide, max(1, numbers // wide)


@_max_pool.register_fake
def _empty_pooled(x: Tensor, size: int, stride: int, ceil: bool) -> tuple[Tensor, Tensor]:
    images, height, width, channels = x.shape
    rows = pooled_side(height, size, stride, ceil)
    columns = pooled_side(width, size, stride, ceil)
    out = x.new_empty((images, rows, columns, channels))
    return out, torch.empty_like(out, dtype=torch.int8)


@_max_pool_slope.register_fake
def _empty_images(
    slope: Tensor, winner: Tensor, height: int, width: int, size: int, stride: int
) -> Tensor:
    return slope.new_empty((slope.shape[0], height, width, slope.shape[3]))


@_patches.register_fake
def _empty_patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    images, channels, image_height, image_width = x.shape
    rows = (image_height - height) // down + 1
    columns = (image_width - width) // across + 1
    row = channels * height * width + 1
    return x.new_empty((images, rows, columns, row + -row % ROW_MULTIPLE))


def _register_batching(operation: Any) -> None:
    """Let `vmap` batch an operation on images: a batch of batches of images is one batch."""

    def batched(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        tensors = []
        for arg, dim in zip(args, dims, strict=True):
            if not isinstance(arg, Tensor):
                continue
            if dim is None:
                tensors.append(arg.expand(info.batch_size, *arg.shape))
            else:
                tensors.append(arg.movedim(dim, 0))
        batch_shape = tensors[0].shape[:2]

        out = operation(*(tensor.flatten(0, 1) for tensor in tensors), *args[len(tensors) :])
        if isinstance(out, tuple):
            parts = tuple(part.unflatten(0, batch_shape) for part in out)
            return parts, (0,) * len(parts)
        return out.unflatten(0, batch_shape), 0

    operation.register_vmap(batched)


for _operation in (_max_pool, _max_pool_slope, _patches):
    _register_batching(_operation)


class _MaxPoolSlope(torch.autograd.Function):
    """The backward pass of max pooling; it cannot be differentiated again."""

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
        gradient = _MaxPoolSlope.apply(slope, *ctx.saved_tensors, *ctx.image, *ctx.window)
        return gradient, None, None, None


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
        gradient = fold(columns, ctx.image, (height, width), stride=(down, across))
        return gradient, None, None, None, None


def max_pool(x: Tensor, size: int, stride: int, ceil: bool = False) -> Tensor:
    """Return the maxima of square windows of images.

    Args:
        x: Images [N, H, W, C].
        size: Side of the windows.
        stride: Distance between windows.
        ceil: Whether a last window may reach over the border, as `ceil_mode` of `nn.MaxPool2d`.

    Returns:
        Maxima [N, OH, OW, C].
    """
    out: Tensor = _MaxPool.apply(x, size, stride, ceil)[0]
    return out


def patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    """Return the patches of images, each as a row.

    Args:
        x: Images [N, C, H, W].
        height: Height of a patch.
        width: Width of a patch.
        down: Vertical distance between patches.
        across: Horizontal distance between patches.

    Returns:
        Patches [N, OH, OW, n]: the numbers by channel, row and column, then 1, then zeros that
        fill the row up to a multiple of `ROW_MULTIPLE`.
    """
    out: Tensor = _Patches.apply(x, height, width, down, across)
    return out
