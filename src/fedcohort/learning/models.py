"""The paper's two networks and small ones for digits, as plain modules; and what a module must not have."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedcohort.checks import check_choice


class Cnn(nn.Module):
    """Two 5x5 convolutions, each with max pooling of stride 2, two hidden layers, one output layer; ReLU."""

    def __init__(
        self,
        shape: tuple[int, ...],
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
            side = _left(shape, pooled_side(side + 2 * padding - 4, pool, 2, ceil))
        self.pool = nn.MaxPool2d(pool, 2, ceil_mode=ceil)
        self.conv1 = nn.Conv2d(shape[0], channels, 5, padding=padding)
        self.conv2 = nn.Conv2d(channels, channels, 5, padding=padding)
        self.full1 = nn.Linear(channels * side * side, hidden[0])
        self.full2 = nn.Linear(hidden[0], hidden[1])
        self.out = nn.Linear(hidden[1], classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [B, classes] of images [B, C, H, W]."""
        x = torch.relu(
            self.pool(self.conv1(x))
        )  # the same as pooling last, on a quarter of the numbers
        x = torch.relu(self.pool(self.conv2(x)))
        x = torch.relu(self.full1(x.flatten(1)))
        logits: Tensor = self.out(torch.relu(self.full2(x)))
        return logits


def cifar_cnn(
    shape: tuple[int, ...], classes: int, pool: int = 2, padding: int = 0, ceil: bool = False
) -> nn.Module:
    """Return the paper's network for CIFAR-10: 64 channels, 384 and 192 hidden units."""
    return Cnn(shape, classes, 64, (384, 192), pool, padding, ceil)


def emnist_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the paper's network for EMNIST-Letter: 10 channels, 1280 and 256 hidden units."""
    return Cnn(shape, classes, 10, (1280, 256))


def mlp(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return one hidden layer of 64 units: for digits, and for data that are not images."""
    features = int(torch.tensor(shape).prod())
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes))


def small_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a 3x3 convolution of 8 channels with pooling and one hidden layer: for digits."""
    side = _left(shape, (shape[1] - 2) // 2)
    return nn.Sequential(
        nn.Conv2d(shape[0], 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * side * side, 32), nn.ReLU(),
        nn.Linear(32, classes),
    )  # fmt: skip


def pooled_side(side: int, size: int, stride: int, ceil: bool) -> int:
    """Return how many windows fit on a side; with `ceil` one more for what is left, if it begins inside, as in PyTorch."""
    whole, rest = divmod(side - size, stride)
    return whole + 1 + (ceil and rest > 0 and (whole + 1) * stride < side)


def _left(shape: tuple[int, ...], side: int) -> int:
    """Return the side that convolutions and pooling leave of an image, if they leave any."""
    if side < 1:
        raise RuntimeError(f"images of shape {tuple(shape)} are too small for its convolutions")
    return side


Maker = Callable[[tuple[int, ...], int], nn.Module]
MODELS: dict[str, Maker] = {
    "mlp": mlp,
    "small-cnn": small_cnn,
    "emnist-cnn": emnist_cnn,
    "cifar-cnn": cifar_cnn,
    # other readings of "followed by 2x2 max pooling": windows that overlap, and reach over the border; convolutions that keep
    # the image's size; both
    "cifar-cnn-pool3": partial(cifar_cnn, pool=3),
    "cifar-cnn-pool3-ceil": partial(cifar_cnn, pool=3, ceil=True),
    "cifar-cnn-same": partial(cifar_cnn, padding=2),
    "cifar-cnn-same-pool3": partial(cifar_cnn, pool=3, padding=2),
}


def make_model(model: str | Maker, shape: tuple[int, ...], classes: int, seed: int) -> nn.Module:
    """Return a freshly initialised model for samples of this shape; the same seed gives the same weights."""
    make = MODELS[check_choice("model", model, MODELS)] if isinstance(model, str) else model
    with torch.random.fork_rng(
        devices=[]
    ):  # modules draw their weights from the global generator: lend it a seed
        torch.default_generator.manual_seed(seed)
        try:
            made = make(shape, classes)
            refuse_shared_statistics(made)
            with torch.no_grad():
                logits = made(torch.zeros(2, *shape))
        except (RuntimeError, IndexError, TypeError, ZeroDivisionError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"model must fit samples of shape {tuple(shape)}, got {model!r}: {reason}"
            ) from None
    if logits.shape != (2, classes):
        raise ValueError(
            f"model must return logits of shape (batch, {classes}), got {tuple(logits.shape)} for a batch of 2"
        )
    return made


def refuse_shared_statistics(module: nn.Module) -> None:
    """Refuse layers that change their own buffers while training: averaging weights does not average what they remember.

    And those whose output for a sample depends on its batch: a short batch trained beside others is filled up.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, _BatchNorm) or any(True for _ in layer.buffers(recurse=False)):
            raise ValueError(
                f"model must have no statistics over batches, got {type(layer).__name__} at {name or 'the top'!r}; "
                "use GroupNorm or LayerNorm"
            )
