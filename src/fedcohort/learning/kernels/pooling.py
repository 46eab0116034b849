"""Max pooling of images [N, H, W, C]."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from fedcohort.learning.kernels.batching import register_batching, tile_of
from fedcohort.learning.models import pooled_side

# Numbers and warps per program: the fastest of a grid on one H200.
MAX_POOL_TILE = (1024, 4)
MAX_POOL_SLOPE_TILE = (2048, 4)


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


@custom_op("fedcohort::max_pool", mutates_args=())
def _max_pool(x: Tensor, size: int, stride: int, ceil: bool) -> tuple[Tensor, Tensor]:
    x = x.contiguous()
    out, winner = _empty_pooled(x, size, stride, ceil)
    numbers, warps = MAX_POOL_TILE
    count = out.shape[:3].numel()
    channels = x.shape[3]
    wide, pixels = tile_of(channels, numbers)
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
    wide, pixels = tile_of(channels, numbers)
    sizes = (count, height, width, *slope.shape[1:3], channels, wide, size, stride, pixels)
    _max_pool_slope_kernel[triton.cdiv(count, pixels),](
        slope, winner, into, *sizes, num_warps=warps
    )
    return into


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


register_batching(_max_pool)
register_batching(_max_pool_slope)


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
