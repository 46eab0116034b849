"""Layers that compute the same as PyTorch's and are fast for many models at once."""

from copy import deepcopy
from importlib.util import find_spec

import torch
from torch import Tensor, nn

# On a GPU the fast matrix products need rows whose length is a multiple of this.
ROW_MULTIPLE = 8
# A patch this long fits a program of the kernel for the gradient of a pooled convolution.
MOST_PATCH_NUMBERS = 128


class MatmulConv2d(nn.Module):
    """A convolution written as one matrix product.

    Over many models at once a convolution becomes a grouped convolution, which libraries run
    slowly; a matrix product becomes a batched matrix product, which they run fast.

    Args:
        conv: Layer to replace; the new layer takes over its parameters.
    """

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.weight = conv.weight
        self.bias = conv.bias
        self.stride = conv.stride
        self.padding = conv.padding

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolution [B, F, H', W'] of images [B, C, H, W]."""
        return self.convolved(self.padded(x))

    def convolved(self, x: Tensor) -> Tensor:
        """Return the convolution of images that are padded already."""
        filters, channels, _, width = self.weight.shape
        has_small_patches = width * channels < filters
        out = self._by_patches(x) if has_small_patches else self._by_strips(x)
        return out.permute(0, 3, 1, 2)

    def padded(self, x: Tensor) -> Tensor:
        """Return images with the zeros around them that the layer adds."""
        vertical = int(self.padding[0])
        horizontal = int(self.padding[1])
        return nn.functional.pad(x, (horizontal, horizontal, vertical, vertical))

    def _by_patches(self, x: Tensor) -> Tensor:
        """Return [B, H', W', F] as patches times kernels.

        This suits small patches, such as those of raw images.
        """
        filters, _, height, width = self.weight.shape
        patches = _patches(x, height, width, *self.stride)
        kernel = self.weight.reshape(filters, -1)
        if self.bias is not None:  # every patch ends in a 1: the product adds the bias
            kernel = torch.cat([kernel, self.bias[:, None]], dim=1)
        kernel = nn.functional.pad(kernel, (0, patches.shape[3] - kernel.shape[1]))
        return (patches.flatten(0, 2) @ kernel.T).view(*patches.shape[:3], filters)

    def _by_strips(self, x: Tensor) -> Tensor:
        """Return [B, H', W', F] as the sum over kernel rows of strips times that row.

        A strip is one row high, so this takes far less memory than whole patches.
        """
        filters, channels, height, width = self.weight.shape
        down, across = self.stride
        x = x.permute(0, 2, 3, 1)
        rows = (x.shape[1] - height) // down + 1

        strips = _strips(x, width, across)
        kernel = self.weight.permute(3, 1, 2, 0).reshape(width * channels, height * filters)
        missing = -(width * channels) % ROW_MULTIPLE if x.is_cuda else 0
        strips = nn.functional.pad(strips, (0, missing))
        kernel = nn.functional.pad(kernel, (0, 0, 0, missing))
        products = (strips.flatten(0, 2) @ kernel).view(*strips.shape[:3], height * filters)

        last_row = down * (rows - 1)
        parts = []
        for i in range(height):
            part = products[:, i : i + last_row + 1 : down, :, i * filters : (i + 1) * filters]
            parts.append(part)
        if self.bias is None:
            return sum(parts[1:], parts[0])
        return sum(parts, self.bias)


class ChannelsLastMaxPool2d(nn.Module):
    """`nn.MaxPool2d` with square windows and no padding, by a kernel for the GPU.

    Args:
        size: Side of the windows.
        stride: Distance between windows.
        ceil: Whether a last window may reach over the border, as `ceil_mode` in PyTorch.
    """

    def __init__(self, size: int, stride: int, ceil: bool = False) -> None:
        super().__init__()
        self.size = size
        self.stride = stride
        self.ceil = ceil

    def forward(self, x: Tensor) -> Tensor:
        """Return the pooled images [B, C, H', W'] of images [B, C, H, W]."""
        from fedcohort.learning.kernels.pooling import max_pool

        pooled = max_pool(x.permute(0, 2, 3, 1), self.size, self.stride, self.ceil)
        return pooled.permute(0, 3, 1, 2)


def pooled_convolution(x: Tensor, conv: nn.Module, pool: nn.Module) -> Tensor:
    """Return relu(pool(conv(x))), by one kernel on a GPU where that is faster.

    Args:
        x: Images [B, C, H, W].
        conv: Convolution, possibly replaced by `for_many_models`.
        pool: Max pooling, possibly replaced likewise.
    """
    if isinstance(conv, MatmulConv2d) and isinstance(pool, ChannelsLastMaxPool2d):
        is_plain = conv.weight.shape[2] == conv.weight.shape[3] and conv.stride == (1, 1)
        # The kernels do not tell the gradient of images, nor are they fast in float32.
        if is_plain and x.dtype == torch.bfloat16 and not x.requires_grad:
            return _by_kernels(conv.padded(x), conv, pool)
    # ReLU after pooling gives the same as before it, on a quarter of the numbers.
    return torch.relu(pool(conv(x)))


def _by_kernels(x: Tensor, conv: MatmulConv2d, pool: ChannelsLastMaxPool2d) -> Tensor:
    """Return relu(pool(conv(x))) of padded images, by the kernels that suit it best."""
    from fedcohort.learning.kernels import conv_pool, conv_pool_relu

    filters, channels, side, _ = conv.weight.shape
    window = (pool.size, pool.stride, pool.ceil)
    learns = torch.is_grad_enabled()
    if not learns and _fits_windows(x, side, pool) and conv_pool_relu.can_convolve(conv.weight):
        bias = conv.weight.new_zeros(filters) if conv.bias is None else conv.bias
        return conv_pool_relu.conv_pool_relu(x, conv.weight, bias)
    is_disjoint = pool.size <= pool.stride  # else one kernel computes pixels several times
    if is_disjoint and channels * side * side <= MOST_PATCH_NUMBERS:
        return torch.relu(conv_pool.conv_pool(x, conv.weight, conv.bias, *window))
    if channels * side >= filters and not learns:
        return torch.relu(conv_pool.conv_then_pool(x, conv.weight, conv.bias, *window))
    return torch.relu(pool(conv.convolved(x)))


def _fits_windows(x: Tensor, side: int, pool: ChannelsLastMaxPool2d) -> bool:
    """Return whether pooling has 2x2 windows that neither overlap nor reach over the border."""
    is_even = x.shape[2] % 2 == x.shape[3] % 2 == (side - 1) % 2
    return pool.size == pool.stride == 2 and (is_even or not pool.ceil)


def for_many_models(module: nn.Module) -> nn.Module:
    """Return a copy that computes the same, with layers that are fast for many models.

    Its parameters have the same names and shapes.
    """
    copy = deepcopy(module)
    kernels = any(has_kernels(parameter) for parameter in copy.parameters())
    top = _replacement(copy, kernels)
    if top is not None:
        return top
    for layer in list(copy.modules()):
        for name, child in layer.named_children():
            new = _replacement(child, kernels)
            if new is not None:
                setattr(layer, name, new)
    return copy


def with_channels_last(module: nn.Module, x: Tensor) -> nn.Module:
    """Return a copy whose convolutions work on images with channels last in memory.

    On a CPU pooling is faster so, and the parameters have the same names and shapes. A module that
    cannot work so, as its own code views images as rows, is copied as it is.

    Args:
        module: A model.
        x: Some inputs, [B, ...].
    """
    fast: nn.Module = deepcopy(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            fast(x)
    except RuntimeError:
        return deepcopy(module)
    return fast


def has_kernels(x: Tensor) -> bool:
    """Return whether our kernels work on a tensor.

    They need a GPU and Triton, which PyTorch for GPUs brings, and do not compute in float64.
    """
    return x.is_cuda and x.dtype != torch.float64 and find_spec("triton") is not None


def _replacement(layer: nn.Module, kernels: bool) -> nn.Module | None:
    """Return the layer to use instead, or None; a subclass may do anything, so it stays."""
    if type(layer) is nn.Conv2d and _is_plain_conv(layer):
        return MatmulConv2d(layer)
    if type(layer) is nn.MaxPool2d and kernels:
        return _pool_replacement(layer)
    return None


def _is_plain_conv(layer: nn.Conv2d) -> bool:
    has_plain_padding = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return layer.groups == 1 and layer.dilation == (1, 1) and has_plain_padding


def _pool_replacement(layer: nn.MaxPool2d) -> nn.Module | None:
    size = layer.kernel_size
    stride = layer.stride
    if not isinstance(size, int) or not isinstance(stride, int):
        return None
    if size * size > torch.iinfo(torch.int8).max:  # the kernel counts a window's pixels in int8
        return None
    if layer.padding != 0 or layer.dilation != 1 or layer.return_indices:
        return None
    return ChannelsLastMaxPool2d(size, stride, layer.ceil_mode)


def _patches(x: Tensor, height: int, width: int, down: int, across: int) -> Tensor:
    """Return the patches [B, H', W', n] of images [B, C, H, W].

    Each patch is a row that ends in a 1 and, on a GPU, some zeros.
    """
    if has_kernels(x):
        from fedcohort.learning.kernels.patches import patches

        return patches(x, height, width, down, across)
    windows = x.unfold(2, height, down).unfold(3, width, across)
    rows = windows.permute(0, 2, 3, 1, 4, 5).flatten(3)
    return nn.functional.pad(rows, (0, 1), value=1.0)


def _strips(x: Tensor, width: int, across: int) -> Tensor:
    """Return the strips [B, H, W', width * C] of images [B, H, W, C]: pixels side by side."""
    if has_kernels(x) and across == 1:
        from fedcohort.learning.kernels.strips import strips

        return strips(x, width)
    last_column = (x.shape[2] - width) // across * across
    shifted = [x[:, :, j : j + last_column + 1 : across] for j in range(width)]
    return torch.cat(shifted, dim=-1)
