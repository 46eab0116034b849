"""The model, the data and the local training: plain PyTorch, without Flower or fedcohort."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

TEST_SIZE = 297  # of 1797 images stay with the server


class Net(nn.Module):
    """One hidden layer on 8 x 8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits [B, 10] of images [B, 64]."""
        return self.layers(images)


def new_model(seed: int) -> Net:
    """Return the same new model for the same seed."""
    torch.manual_seed(seed)
    return Net()


def load_data(num_clients: int, client: int | None) -> tuple[Tensor, Tensor]:
    """Return the images and labels of a client, or of the server if `client` is None."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    if client is None:
        indices = order[:TEST_SIZE]
    else:
        indices = np.array_split(order[TEST_SIZE:], num_clients)[client]
    images = torch.tensor(digits.data[indices] / 16.0, dtype=torch.float32)
    labels = torch.tensor(digits.target[indices])
    return images, labels


def train(
    model: Net, images: Tensor, labels: Tensor, *, epochs: int, learning_rate: float
) -> float:
    """Train the model in place by SGD and return the loss of the last batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    loss = torch.tensor(0.0)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(20):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
    return loss.item()


def accuracy(model: Net, images: Tensor, labels: Tensor) -> float:
    """Return the share of images that the model classifies correctly."""
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())
