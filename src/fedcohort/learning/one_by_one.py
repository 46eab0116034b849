"""Local updates of one client after the other, as a plain PyTorch script computes them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.sgd import sgd

from fedcohort.arrays import Ints
from fedcohort.learning.jobs import Jobs, LocalUpdates
from fedcohort.learning.sgd import Sgd
from fedcohort.learning.weights import flat_weights, named_weights
from fedcohort.learning.workers import Workers


class SequentialTrainer:
    """Trains each job alone: the mode "one-by-one".

    Each worker takes one job after another, the longest first.

    Args:
        workers: Threads and their copies of the model.
        x: Inputs [N, ...].
        y: Labels [N].
        sgd: Local optimiser.
    """

    def __init__(self, workers: Workers, x: Tensor, y: Tensor, sgd: Sgd) -> None:
        self.workers = workers
        self.x = x
        self.y = y
        self.sgd = sgd

    def train(self, models: Tensor, jobs: Jobs) -> LocalUpdates:
        """Train all jobs, each from its run's row of models [R, P].

        The result depends neither on the number of workers nor on which job ends first.
        """
        change = torch.empty((jobs.run.size, models.shape[1]), device=models.device)
        loss = torch.empty(jobs.run.size, device=models.device)

        def work(job: int) -> None:
            start = models[int(jobs.run[job])]
            trained, loss[job] = self._train_job(start, jobs.batches[job][:], float(jobs.mu[job]))
            change[job] = trained - start

        longest_first = np.argsort(-jobs.steps, kind="stable").tolist()
        self.workers.map(work, longest_first)
        return LocalUpdates(change, loss)

    def _train_job(self, start: Tensor, rows: Ints, mu: float) -> tuple[Tensor, float]:
        """Return the trained weights [P] and the mean loss over the steps."""
        module = self.workers.module().train()
        weights = list(module.parameters())
        anchors = list(named_weights(start, module).values())
        with torch.no_grad():
            for weight, anchor in zip(weights, anchors, strict=True):
                weight.copy_(anchor)
        velocities = [torch.zeros_like(weight) for weight in weights]

        has_sample = rows >= 0
        sizes = has_sample.sum(axis=1).tolist()
        order = torch.from_numpy(rows[has_sample]).to(start.device)
        batches_x = torch.split(self.x[order], sizes)
        batches_y = torch.split(self.y[order], sizes)

        total_loss = 0.0
        for x, y in zip(batches_x, batches_y, strict=True):
            for weight in weights:
                weight.grad = None
            loss = cross_entropy(module(x), y)
            loss.backward()  # type: ignore[no-untyped-call]
            if mu:
                _add_proximal_gradient(weights, anchors, mu)
            self._update(weights, velocities)
            total_loss += loss.item()
        return flat_weights(module), total_loss / len(rows)

    @torch.no_grad()
    def _update(self, weights: list[nn.Parameter], velocities: list[Tensor]) -> None:
        """Take a step, as `torch.optim.SGD` does without its bookkeeping."""
        used = []
        for weight, velocity in zip(weights, velocities, strict=True):
            if weight.grad is not None:  # None if frozen, or if the model does not use it
                used.append((weight, weight.grad, velocity))
        own_weights, gradients, own_velocities = map(list, zip(*used, strict=True))
        sgd(
            own_weights,
            gradients,
            own_velocities,
            fused=True,
            weight_decay=0.0,
            momentum=self.sgd.momentum,
            lr=self.sgd.rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


def _add_proximal_gradient(weights: Sequence[Tensor], anchors: Sequence[Tensor], mu: float) -> None:
    """Add the gradient of (mu / 2) |theta - anchor|^2, FedProx's term."""
    for weight, anchor in zip(weights, anchors, strict=True):
        if weight.grad is not None:  # None if frozen, or if the model does not use it
            weight.grad.add_(weight.detach() - anchor, alpha=mu)
