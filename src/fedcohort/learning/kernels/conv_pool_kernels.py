"""The kernels of `conv_pool`."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
import triton
import triton.language as tl


@triton.jit
def conv_pool_kernel(
    x,
    kernel,
    out,
    winner,
    pixels,
    model_stride,
    H,
    W,
    CH,
    CW,
    OH,
    OW,
    C: tl.constexpr,
    LENGTH: tl.constexpr,
    NUMBERS: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    F: tl.constexpr,
    WIDE: tl.constexpr,
    K: tl.constexpr,
    STRIDE: tl.constexpr,
    PIXELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Pool the convolution of images.

    Maxima `out` and their positions in the window `winner`, both [S, B, OH, OW, F], over
    windows of the convolution [CH, CW] of images x [S, B, H, W, C] with `kernel` [S, CHUNKS *
    CHUNK, F]. A patch has NUMBERS numbers, LENGTH in a row.
    """
    model = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    image = pixel // (OH * OW)
    row = (pixel // OW) % OH * STRIDE
    column = pixel % OW * STRIDE
    filter = tl.arange(0, WIDE)
    number = tl.arange(0, CHUNK)
    x += model * model_stride
    kernel += model * (CHUNKS * CHUNK * F)

    best = tl.full((PIXELS, WIDE), float("-inf"), tl.float32)
    position = tl.zeros((PIXELS, WIDE), tl.int8)
    for window in range(K * K):
        up = row + window // K
        left = column + window % K
        exists = (pixel < pixels) & (up < CH) & (left < CW)
        corner = ((image.to(tl.int64) * H + up) * W + left) * C
        total = tl.zeros((PIXELS, WIDE), tl.float32)
        for chunk in range(CHUNKS):
            at = chunk * CHUNK + number
            offset = at // LENGTH * W * C + at % LENGTH
            patch = tl.load(
                x + corner[:, None] + offset[None, :],
                exists[:, None] & (at < NUMBERS)[None, :],
                0.0,
            )
            factor = tl.load(
                kernel + at[:, None] * F + filter[None, :],
                (filter < F)[None, :],
                0.0,
            )
            total = tl.dot(patch, factor, total, input_precision=PRECISION)
        better = exists[:, None] & ((total > best) | (total != total))  # nan wins
        best = tl.where(better, total, best)
        position = tl.where(better, window, position).to(tl.int8)

    inside = (pixel < pixels)[:, None] & (filter < F)[None, :]
    target = (model * pixels + pixel)[:, None] * F + filter[None, :]
    tl.store(out + target, best.to(out.dtype.element_ty), inside)
    tl.store(winner + target, position, inside)


@triton.jit
def conv_pool_slope_kernel(
    x,
    slope,
    winner,
    into,
    pixels,
    model_stride,
    H,
    W,
    CH,
    CW,
    OH,
    OW,
    C: tl.constexpr,
    LENGTH: tl.constexpr,
    NUMBERS: tl.constexpr,
    ROWS: tl.constexpr,
    F: tl.constexpr,
    WIDE: tl.constexpr,
    K: tl.constexpr,
    STRIDE: tl.constexpr,
    PIXELS: tl.constexpr,
    SPLITS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Add up the gradient of the kernels, in parts.

    Partial sums `into` [S, SPLITS, ROWS, F] of the gradient of the kernels, from the gradients
    `slope` [S, B, OH, OW, F] of the maxima. The first NUMBERS rows are the numbers of a patch.
    """
    model = tl.program_id(1).to(tl.int64)
    split = tl.program_id(0)
    filter = tl.arange(0, WIDE)
    number = tl.arange(0, ROWS)
    offset = number // LENGTH * W * C + number % LENGTH
    x += model * model_stride

    total = tl.zeros((ROWS, WIDE), tl.float32)
    for tile in range(split, tl.cdiv(pixels, PIXELS), SPLITS):
        pixel = tile * PIXELS + tl.arange(0, PIXELS)
        image = pixel // (OH * OW)
        row = (pixel // OW) % OH * STRIDE
        column = pixel % OW * STRIDE
        inside = (pixel < pixels)[:, None] & (filter < F)[None, :]
        source = (model * pixels + pixel)[:, None] * F + filter[None, :]
        value = tl.load(slope + source, inside, 0.0)
        position = tl.load(winner + source, inside, -1).to(tl.int32)
        for window in range(K * K):
            up = row + window // K
            left = column + window % K
            exists = (pixel < pixels) & (up < CH) & (left < CW)
            corner = ((image.to(tl.int64) * H + up) * W + left) * C
            patch = tl.load(
                x + corner[:, None] + offset[None, :],
                exists[:, None] & (number < NUMBERS)[None, :],
                0.0,
            )
            won = tl.where(position == window, value, 0.0).to(patch.dtype)
            total = tl.dot(tl.trans(patch), won, total, input_precision=PRECISION)

    target = ((model * SPLITS + split) * ROWS + number)[:, None] * F + filter[None, :]
    tl.store(into + target, total, (filter < F)[None, :])
