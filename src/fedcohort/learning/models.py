"""The networks: the paper's two, other readings of them, and small ones for digits.

A network has one name everywhere, its key in `MODELS`. The paper prints both of its networks as
two 5x5 convolutions "followed by 2x2 max pooling", two hidden layers and an output layer. It
does not say whether windows overlap, reach over the border or are padded; the networks that
start with "cifar-cnn-" are such readings.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedcohort.checks import one_line
from fedcohort.learning.layers import pooled_convolution
from fedcohort.references import make_own, resolve

Shape = tuple[int, ...]  # of one sample
ModelFactory = Callable[[Shape, int], nn.Module]  # (shape, classes) -> module


class Cnn(nn.Module):
    """Two 5x5 convolutions with max pooling, two hidden layers and an output layer.

    Pooling has stride 2. All layers but the last end in ReLU.

    Args:
        shape: Shape of one image, (channels, side, side).
        classes: Number of logits.
        channels: Number of channels of each convolution.
        hidden: Units of the two hidden layers.
        pool: Side of the pooling windows.
        padding: Zeros on every side of a convolution's input; 2 keeps the image's size.
        ceil: Whether a last pooling window may reach over the border.
    """

    def __init__(
        self,
        shape: Shape,
        classes: int,
        channels: int,
        hidden: tuple[int, int],
        pool: int = 2,
        padding: int = 0,
        ceil: bool = False,
    ) -> None:
        super().__init__()
        side = shape[1]
        for _ in range(2):
            convolved = side + 2 * padding - 4
            side = _check_side(shape, pooled_side(convolved, pool, 2, ceil))
        self.pool = nn.MaxPool2d(pool, 2, ceil_mode=ceil)
        self.conv1 = nn.Conv2d(shape[0], channels, 5, padding=padding)
        self.conv2 = nn.Conv2d(channels, channels, 5, padding=padding)
        self.full1 = nn.Linear(channels * side * side, hidden[0])
        self.full2 = nn.Linear(hidden[0], hidden[1])
        self.out = nn.Linear(hidden[1], classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [B, classes] of images [B, C, H, W]."""
        x = pooled_convolution(x, self.conv1, self.pool)
        x = pooled_convolution(x, self.conv2, self.pool)
        x = torch.relu(self.full1(x.flatten(1)))
        logits: Tensor = self.out(torch.relu(self.full2(x)))
        return logits


def mlp(shape: Shape, classes: int) -> nn.Module:
    """Return one hidden layer of 64 units, for digits and for data that are not images."""
    features = int(torch.tensor(shape).prod())
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes))


def small_cnn(shape: Shape, classes: int) -> nn.Module:
    """Return a 3x3 convolution of 8 channels with pooling and a hidden layer, for digits."""
    side = _check_side(shape, (shape[1] - 2) // 2)
    return nn.Sequential(
        nn.Conv2d(shape[0], 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * side * side, 32),
        nn.ReLU(),
        nn.Linear(32, classes),
    )


def emnist_cnn(shape: Shape, classes: int) -> nn.Module:
    """Return the network printed for EMNIST-Letter: 10 channels, 1280 and 256 hidden units."""
    return Cnn(shape, classes, channels=10, hidden=(1280, 256))


def cifar_cnn(shape: Shape, classes: int) -> nn.Module:
    """Return the network printed for CIFAR-10: 64 channels, 384 and 192 hidden units."""
    return Cnn(shape, classes, channels=64, hidden=(384, 192))


def cifar_cnn_pool3(shape: Shape, classes: int) -> nn.Module:
    """Return `cifar-cnn` with pooling windows of 3x3, which overlap, instead of 2x2."""
    return Cnn(shape, classes, channels=64, hidden=(384, 192), pool=3)


def cifar_cnn_pool3_ceil(shape: Shape, classes: int) -> nn.Module:
    """Return `cifar-cnn` with pooling windows of 3x3 that may reach over the border."""
    return Cnn(shape, classes, channels=64, hidden=(384, 192), pool=3, ceil=True)


def cifar_cnn_same(shape: Shape, classes: int) -> nn.Module:
    """Return `cifar-cnn` with padded convolutions, which keep the image's size."""
    return Cnn(shape, classes, channels=64, hidden=(384, 192), padding=2)


def cifar_cnn_same_pool3(shape: Shape, classes: int) -> nn.Module:
    """Return `cifar-cnn` with padded convolutions and pooling windows of 3x3."""
    return Cnn(shape, classes, channels=64, hidden=(384, 192), pool=3, padding=2)


MODELS: dict[str, ModelFactory] = {
    "mlp": mlp,
    "small-cnn": small_cnn,
    "emnist-cnn": emnist_cnn,
    "cifar-cnn": cifar_cnn,
    "cifar-cnn-pool3": cifar_cnn_pool3,
    "cifar-cnn-pool3-ceil": cifar_cnn_pool3_ceil,
    "cifar-cnn-same": cifar_cnn_same,
    "cifar-cnn-same-pool3": cifar_cnn_same_pool3,
}


def make_model(model: str | ModelFactory, shape: Shape, classes: int, seed: int) -> nn.Module:
    """Return a new model whose initial weights depend on the seed alone.

    Args:
        model: Name in `MODELS`, a name that an installed package registers, a reference such as
            "mine.py:two_layers", or a function of shape and classes that returns a module.
        shape: Shape of one sample, without the batch axis.
        classes: Number of classes.
        seed: Seed of the initial weights. The global generator is left as it was.

    Returns:
        A module that maps [B, *shape] to logits [B, classes].

    Raises:
        ValueError: If the name is unknown, the model does not fit the samples, or it has
            statistics over batches.

    Examples:
        >>> model = make_model("mlp", shape=(5,), classes=3, seed=0)
        >>> model(torch.zeros(2, 5)).shape
        torch.Size([2, 3])
    """
    factory = _find_model(model) if isinstance(model, str) else model

    # Modules draw their weights from the global generator, so lend it the seed.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            module = factory(shape, classes)
            check_no_batch_statistics(module)
            with torch.no_grad():
                logits = module(torch.zeros(2, *shape))
        except (RuntimeError, IndexError, TypeError, ZeroDivisionError) as error:
            reason = one_line(error)
            raise ValueError(
                f"model must fit samples of shape {tuple(shape)}, got {model!r}: {reason}"
            ) from None

    if not isinstance(logits, Tensor) or logits.shape != (2, classes):
        got = tuple(logits.shape) if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise ValueError(
            f"model must return logits of shape (batch, {classes}), got {got} for a batch of 2"
        )
    return module


def _find_model(name: str) -> ModelFactory:
    """Return the function that makes a model, by its name or a reference."""
    found = resolve("model", name, MODELS)
    if name in MODELS:
        return MODELS[name]
    return lambda shape, classes: make_own(f"model {name!r}", found, nn.Module, shape, classes)


def check_no_batch_statistics(module: nn.Module) -> None:
    """Check that no layer remembers, or depends on, the other samples of a batch.

    Averaging weights does not average the buffers that such a layer changes while it trains.
    And a short batch is filled up when it is trained beside others, so the output for a sample
    must not depend on its batch.
    """
    for name, layer in module.named_modules():
        has_buffers = any(True for _ in layer.buffers(recurse=False))
        if isinstance(layer, _BatchNorm) or has_buffers:
            raise ValueError(
                "model must have no statistics over batches, "
                f"got {type(layer).__name__} at {name or 'the top'!r}; "
                "use GroupNorm or LayerNorm"
            )


def pooled_side(side: int, size: int, stride: int, ceil: bool) -> int:
    """Return how many pooling windows fit on a side of an image, as PyTorch counts them.

    With `ceil` there is one more for the remainder, if that window starts inside the image.
    """
    full_strides, remainder = divmod(side - size, stride)
    windows = full_strides + 1
    if ceil and remainder > 0 and windows * stride < side:
        windows += 1
    return windows


def _check_side(shape: Shape, side: int) -> int:
    """Return the side that convolutions and pooling leave of an image, if they leave any."""
    if side < 1:
        raise RuntimeError(f"images of shape {tuple(shape)} are too small for its convolutions")
    return side
