"""Patches of images [N, C, H, W], each as a row of a matrix."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op
from torch.nn.functional import fold

from fedcohort.learning.kernels.batching import register_batching, tile_of
from fedcohort.learning.layers import ROW_MULTIPLE

PATCHES_TILE = (4096, 1)  # numbers and warps per program: the fastest of a grid on one H200


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


@custom_op("fedcohort::patches", mutates_args=())
def _patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    x = x.contiguous()
    out: Tensor = _empty_patches(x, height, width, down, across)
    numbers, warps = PATCHES_TILE
    count = out.shape[:3].numel()
    row = out.shape[3]
    length = x.shape[1] * height * width
    wide, pixels = tile_of(row, numbers)
    image_sizes = (count, *x.shape[1:], *out.shape[1:3], down, across)
    patch_sizes = (height, width, length, row, wide, pixels)
    _patches_kernel[triton.cdiv(count, pixels),](
        x, out, *image_sizes, *patch_sizes, num_warps=warps
    )
    return out


@_patches.register_fake
def _empty_patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    images, channels, image_height, image_width = x.shape
    rows = (image_height - height) // down + 1
    columns = (image_width - width) // across + 1
    row = channels * height * width + 1
    return x.new_empty((images, rows, columns, row + -row % ROW_MULTIPLE))


register_batching(_patches)


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
