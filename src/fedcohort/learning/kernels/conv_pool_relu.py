"""Convolution, 2x2 max pooling and ReLU in one kernel for a GPU, to test many models.

A test needs no gradient, so a program keeps the four positions of its pooling windows in registers
and writes only the largest. Raw images are the same for all models: their patches are gathered
once and multiplied with the kernels of one model after the other. Later layers have images of each
model, with many channels, which are multiplied channel by channel without gathering.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from fedcohort.learning.kernels.batching import register_batching

# Pixels, warps and stages per program: the fastest of a grid on one H200.
RAW_TILE = (64, 4, 3)
OWN_TILE = (128, 8, 3)
SMALLEST = 16  # side of a matrix product
MOST_FILTERS = 64  # more would not fit the registers, four windows at a time
MOST_RAW_NUMBERS = 128  # of a patch that stays in registers


@triton.jit
def _window(
    x,
    pixel,
    pixels,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
    H,
    W,
    OH,
    OW,
    C: tl.constexpr,
    LENGTH: tl.constexpr,
    NUMBERS: tl.constexpr,
    START: tl.constexpr,
    COUNT: tl.constexpr,
):
    """Return COUNT numbers of the patches [PIXELS, COUNT] at one position of all windows."""
    image = (pixel // (OH * OW)).to(tl.int64)
    up = (pixel // OW) % OH * 2 + DOWN
    left = pixel % OW * 2 + ACROSS
    corner = ((image * H + up) * W + left) * C
    at = START + tl.arange(0, COUNT)
    offset = at // LENGTH * W * C + at % LENGTH
    inside = (pixel < pixels)[:, None] & (at < NUMBERS)[None, :]
    return tl.load(x + corner[:, None] + offset[None, :], inside, 0.0)


@triton.jit
def _largest(a, b):
    """Return the larger numbers; nan wins, so that a model that diverged is seen to."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _store(out, bias, total, model, pixel, pixels, F: tl.constexpr):
    """Store relu(total + bias) at some pixels of a model."""
    filter = tl.arange(0, F)
    total += tl.load(bias + model * F + filter)[None, :].to(tl.float32)
    total = _largest(total, 0.0)
    target = (model * pixels + pixel).to(tl.int64)[:, None] * F + filter[None, :]
    tl.store(out + target, total.to(out.dtype.element_ty), (pixel < pixels)[:, None])


# Maxima `out` [S, B, OH, OW, F] of the convolutions of the same images x [B, H, W, C] with
# `kernel` [S, NUMBERS, F]. A patch has NUMBERS numbers, LENGTH in a row; the first FIRST of them
# are multiplied apart from the others, since both counts must be powers of two.
@triton.jit
def _raw_kernel(
    x,
    kernel,
    bias,
    out,
    models,
    pixels,
    H,
    W,
    OH,
    OW,
    C: tl.constexpr,
    LENGTH: tl.constexpr,
    NUMBERS: tl.constexpr,
    FIRST: tl.constexpr,
    REST: tl.constexpr,
    F: tl.constexpr,
    PIXELS: tl.constexpr,
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    filter = tl.arange(0, F)
    a0 = _window(x, pixel, pixels, 0, 0, H, W, OH, OW, C, LENGTH, NUMBERS, 0, FIRST)
    a1 = _window(x, pixel, pixels, 0, 1, H, W, OH, OW, C, LENGTH, NUMBERS, 0, FIRST)
    a2 = _window(x, pixel, pixels, 1, 0, H, W, OH, OW, C, LENGTH, NUMBERS, 0, FIRST)
    a3 = _window(x, pixel, pixels, 1, 1, H, W, OH, OW, C, LENGTH, NUMBERS, 0, FIRST)
    b0 = _window(x, pixel, pixels, 0, 0, H, W, OH, OW, C, LENGTH, NUMBERS, FIRST, REST)
    b1 = _window(x, pixel, pixels, 0, 1, H, W, OH, OW, C, LENGTH, NUMBERS, FIRST, REST)
    b2 = _window(x, pixel, pixels, 1, 0, H, W, OH, OW, C, LENGTH, NUMBERS, FIRST, REST)
    b3 = _window(x, pixel, pixels, 1, 1, H, W, OH, OW, C, LENGTH, NUMBERS, FIRST, REST)
    first = tl.arange(0, FIRST)
    rest = FIRST + tl.arange(0, REST)
    for model in range(models):
        own = kernel + model * (NUMBERS * F)
        f = tl.load(own + first[:, None] * F + filter[None, :])
        g = tl.load(own + rest[:, None] * F + filter[None, :], (rest < NUMBERS)[:, None], 0.0)
        total = tl.dot(b0, g, tl.dot(a0, f))
        total = _largest(total, tl.dot(b1, g, tl.dot(a1, f)))
        total = _largest(total, tl.dot(b2, g, tl.dot(a2, f)))
        total = _largest(total, tl.dot(b3, g, tl.dot(a3, f)))
        _store(out, bias, total, model, pixel, pixels, F)


# Maxima `out` [S, B, OH, OW, F] of the convolutions of images x [S, B, H, W, C] with `kernel`
# [S, SIDE * SIDE, C, F].
@triton.jit
def _own_kernel(
    x,
    kernel,
    bias,
    out,
    model_stride,
    pixels,
    H,
    W,
    OH,
    OW,
    SIDE: tl.constexpr,
    C: tl.constexpr,
    F: tl.constexpr,
    PIXELS: tl.constexpr,
):
    model = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    existing = tl.minimum(pixel, pixels - 1)  # the last program repeats a pixel that it drops
    image = (existing // (OH * OW)).to(tl.int64)
    up = (existing // OW) % OH * 2
    left = existing % OW * 2
    channel = tl.arange(0, C)
    filter = tl.arange(0, F)
    corner = ((image * H + up) * W + left) * C
    numbers = x + model * model_stride + corner[:, None] + channel[None, :]
    factors = kernel + model * (SIDE * SIDE * C * F) + channel[:, None] * F + filter[None, :]

    total0 = tl.zeros((PIXELS, F), tl.float32)
    total1 = tl.zeros((PIXELS, F), tl.float32)
    total2 = tl.zeros((PIXELS, F), tl.float32)
    total3 = tl.zeros((PIXELS, F), tl.float32)
    for position in range(SIDE * SIDE):
        at = numbers + (position // SIDE * W + position % SIDE) * C
        factor = tl.load(factors + position * (C * F))
        total0 = tl.dot(tl.load(at), factor, total0)
        total1 = tl.dot(tl.load(at + C), factor, total1)
        total2 = tl.dot(tl.load(at + W * C), factor, total2)
        total3 = tl.dot(tl.load(at + W * C + C), factor, total3)
    total = _largest(_largest(total0, total1), _largest(total2, total3))
    _store(out, bias, total, model, pixel, pixels, F)


@custom_op("fedcohort::conv_pool_relu", mutates_args=())
def _conv_pool_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    out: Tensor = _empty_result(x, weight, bias)
    bias = bias.contiguous()
    kernel = weight.permute(0, 3, 4, 2, 1).contiguous()  # [S, n, n, C, F]
    if _is_power(weight.shape[2]):
        _launch_own(x.contiguous(), kernel, bias, out)
    elif x.shape[0] == 1 or x.stride(0) == 0:
        _launch_raw(x[0].contiguous(), kernel, bias, out)
    else:
        for model in range(len(x)):
            own = slice(model, model + 1)
            _launch_raw(x[model].contiguous(), kernel[own], bias[own], out[own])
    return out


@_conv_pool_relu.register_fake
def _empty_result(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    models, images, height, width, _ = x.shape
    filters, side = weight.shape[1], weight.shape[3]
    rows = (height - side + 1) // 2
    columns = (width - side + 1) // 2
    return x.new_empty((models, images, rows, columns, filters))


register_batching(_conv_pool_relu)


def _launch_raw(x: Tensor, kernel: Tensor, bias: Tensor, out: Tensor) -> None:
    _, height, width, channels = x.shape
    models, side, _, _, filters = kernel.shape
    pixels = out.shape[1:4].numel()
    numbers = side * side * channels
    first = 2 ** (numbers.bit_length() - 1)
    rest = max(SMALLEST, triton.next_power_of_2(numbers - first))
    tile, warps, stages = RAW_TILE
    _raw_kernel[triton.cdiv(pixels, tile),](
        x,
        kernel,
        bias,
        out,
        models,
        pixels,
        height,
        width,
        *out.shape[2:4],
        channels,
        side * channels,
        numbers,
        first,
        rest,
        filters,
        tile,
        num_warps=warps,
        num_stages=stages,
    )


def _launch_own(x: Tensor, kernel: Tensor, bias: Tensor, out: Tensor) -> None:
    models, _, height, width, channels = x.shape
    side, filters = kernel.shape[1], kernel.shape[4]
    pixels = out.shape[1:4].numel()
    tile, warps, stages = OWN_TILE
    _own_kernel[triton.cdiv(pixels, tile), models](
        x,
        kernel,
        bias,
        out,
        x.stride(0),
        pixels,
        height,
        width,
        *out.shape[2:4],
        side,
        channels,
        filters,
        tile,
        num_warps=warps,
        num_stages=stages,
    )


def _is_power(count: int) -> bool:
    """Return whether a number of channels or filters is a side of a product in registers."""
    return SMALLEST <= count <= MOST_FILTERS and count & (count - 1) == 0


def can_convolve(weight: Tensor) -> bool:
    """Return whether `conv_pool_relu` works for kernels [F, C, n, n]."""
    filters, channels, side, _ = weight.shape
    is_short = SMALLEST <= channels * side * side <= MOST_RAW_NUMBERS
    return _is_power(filters) and (_is_power(channels) or is_short)


def conv_pool_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return relu of the maxima of 2x2 windows of a convolution; it cannot be differentiated.

    Args:
        x: Images [B, C, H, W], fast if channels are last in memory.
        weight: Square kernels [F, C, n, n], for which `can_convolve` is true.
        bias: Bias of each filter [F].

    Returns:
        Images [B, F, H', W'], without the last row and column where they are no whole window.
    """
    images = x.permute(0, 2, 3, 1)
    out: Tensor = _conv_pool_relu(images[None], weight[None], bias[None])[0]
    return out.permute(0, 3, 1, 2)
