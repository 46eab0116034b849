"""The model, the data, and how a client learns: plain PyTorch, nothing of Flower or fedcohort."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

TEST = 297  # of 1797 images stay with the server


class Net(nn.Module):
    """One hidden layer on 8 x 8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits of images [B, 64]."""
        return self.layers(x)


def new_model(seed: int) -> Net:
    """Return the same fresh model for the same seed."""
    torch.manual_seed(seed)
    return Net()


def data(clients: int, client: int | None) -> tuple[Tensor, Tensor]:
    """Return a client's images and labels; those of the server for None."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    mine = order[:TEST] if client is None else np.array_split(order[TEST:], clients)[client]
    return torch.tensor(digits.data[mine] / 16.0, dtype=torch.float32), torch.tensor(
        digits.target[mine]
    )


def train(model: Net, x: Tensor, y: Tensor, epochs: int, learning_rate: float) -> float:
    """Train in place by SGD and return the last batch's loss."""
    optimiser, loss = (
        torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9),
        torch.tensor(0.0),
    )
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(20):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimiser.step()
    return loss.item()


def accuracy(model: Net, x: Tensor, y: Tensor) -> float:
    """Return the share of images told right."""
    with torch.no_grad():
        return float((model(x).argmax(dim=1) == y).float().mean())
