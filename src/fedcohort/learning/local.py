"""Local updates: SGD with momentum on the clients' own data, of many clients at once or one after the other.

    FedAvg and FedProx differ in one term: the gradient of (mu / 2) |theta - anchor|^2, mu = 0 for FedAvg.

Both ways compute the same: `Together` steps all slots of a schedule in one batched operation, `OneByOne` gives each job to one
worker. Which is faster depends on the model and the machine: the engine measures.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import local
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad_and_value, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import cross_entropy

from fedcohort.arrays import Ints
from fedcohort.checks import MAX_COUNT, check_int, check_positive, check_range
from fedcohort.learning.flat import flat_weights, forward_of, views
from fedcohort.learning.layers import for_many_models
from fedcohort.learning.schedule import pack
from fedcohort.learning.workers import Workers

Step = Callable[..., tuple[Tensor, Tensor, Tensor]]
R = TypeVar("R")


@dataclass(frozen=True)
class Sgd:
    """Local optimiser: momentum starts from zero in every round."""

    rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 40

    def __post_init__(self) -> None:
        check_positive("rate", self.rate)
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_int("batch_size", self.batch_size, 1, MAX_COUNT)


@dataclass(frozen=True, eq=False)
class Jobs:
    """Local updates to compute: job j starts from models[run[j]] and takes one step per row of batches[j] (-1: no sample)."""

    run: Ints
    batches: list[Ints]
    mu: Tensor  # [J]

    def only(self, which: Ints) -> "Jobs":
        """Return some of the jobs."""
        return Jobs(
            self.run[which], [self.batches[job] for job in which], self.mu[torch.from_numpy(which)]
        )


@dataclass(frozen=True, eq=False)
class Trained:
    """What came back: change [J, P] = theta_j - theta, loss [J] = mean over the steps."""

    change: Tensor
    loss: Tensor


class Together:
    """Step many jobs at once on the device that holds the data; on a CPU each worker takes its part of the jobs."""

    def __init__(
        self,
        workers: Workers,
        x: Tensor,
        y: Tensor,
        sgd: Sgd,
        slots: int,
        dtype: torch.dtype = torch.float32,
        compiled: bool = False,
    ) -> None:
        self.workers, self.x, self.y, self.sgd, self.slots = workers, x.to(dtype), y, sgd, slots
        self._dtype, self._compiled, self._own = dtype, compiled, local()

    def train(self, models: Tensor, jobs: Jobs) -> Trained:
        """Return what all jobs learnt."""
        change = torch.empty((jobs.run.size, models.shape[1]), device=models.device)
        loss = torch.empty(jobs.run.size, device=models.device)
        part = pack(_lengths(jobs), self.workers.count).slot

        def work(place: int) -> None:
            mine = np.flatnonzero(part == place)
            if mine.size:
                trained = self._train_part(models, jobs.only(mine))
                at = torch.from_numpy(mine).to(models.device)
                change[at], loss[at] = trained.change, trained.loss

        self.workers.map(work, range(self.workers.count))
        return Trained(change, loss)

    def _train_part(self, models: Tensor, jobs: Jobs) -> Trained:
        """Train the jobs in slots; a slot without work repeats a step whose result nobody reads."""
        device, count = models.device, jobs.run.size
        plan = pack(_lengths(jobs), self.slots)
        order = np.full((plan.length, self.slots, self.sgd.batch_size), -1, dtype=np.int64)
        for job, rows in enumerate(jobs.batches):
            order[plan.start[job] : plan.start[job] + len(rows), plan.slot[job]] = rows
        samples = torch.from_numpy(order).to(device)
        # a place without a sample repeats one of its job
        own = torch.where(samples >= 0, samples, samples[..., :1]).clamp_min(0)
        run, slot, mus = (
            torch.from_numpy(jobs.run).to(device),
            torch.from_numpy(plan.slot).to(device),
            jobs.mu.to(device),
        )
        begins, ends = _by_step(plan.start, device), _by_step(plan.start + plan.steps - 1, device)

        step = self._step()
        weights = models[torch.zeros(self.slots, dtype=torch.int64, device=device)]
        velocity, anchor = torch.zeros_like(weights), weights.clone()
        mu, total = torch.zeros(self.slots, device=device), torch.zeros(self.slots, device=device)
        change, loss = (
            torch.empty((count, models.shape[1]), device=device),
            torch.empty(count, device=device),
        )
        for now in range(plan.length):
            if now in begins:
                new = begins[now]
                at = slot[new]
                weights[at] = anchor[at] = models[run[new]]
                velocity[at], total[at], mu[at] = 0.0, 0.0, mus[new]
            known, counts = own[now], (samples[now] >= 0).float()
            weights, velocity, value = step(
                weights, velocity, anchor, mu, self.x[known], self.y[known], counts
            )
            total = total + value
            if now in ends:
                done = ends[now]
                at = slot[done]
                change[done] = weights[at] - anchor[at]
                loss[done] = total[at]
        return Trained(change, loss / torch.from_numpy(plan.steps).to(device))

    def _step(self) -> Step:
        """Return this thread's step function."""
        if not hasattr(self._own, "step"):
            step = batched_step(self.workers.module(), self.sgd, self._dtype)
            self._own.step = compiled(step) if self._compiled else step
        own: Step = self._own.step
        return own


def batched_step(module: nn.Module, sgd: Sgd, dtype: torch.dtype) -> Step:
    """Return one SGD step of many models [S, P] on a batch each [S, B, ...]; counts [S, B] is 0 where there is no sample."""
    forward = forward_of(for_many_models(module).train())
    moving = torch.cat(
        [
            torch.full((p.numel(),), float(p.requires_grad), device=p.device)
            for p in module.parameters()
        ]
    )
    frozen = not bool(moving.all())

    def loss_of(weights: Tensor, x: Tensor, y: Tensor, counts: Tensor) -> Tensor:
        each = cross_entropy(forward(weights.to(dtype), x).float(), y, reduction="none")
        return (each * counts).sum() / counts.sum().clamp_min(1.0)

    gradient = vmap(grad_and_value(loss_of), randomness="different")

    def step(
        weights: Tensor,
        velocity: Tensor,
        anchor: Tensor,
        mu: Tensor,
        x: Tensor,
        y: Tensor,
        counts: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        slope, loss = gradient(weights, x, y, counts)
        slope = slope * moving if frozen else slope
        velocity = sgd.momentum * velocity + slope + mu[:, None] * (weights - anchor)
        return weights - sgd.rate * velocity, velocity, loss

    return step


def compiled(function: Callable[..., R]) -> Callable[..., R]:
    """Return a function of tensors compiled at its first call, for the shapes it is given then and no others.

    Differentiation and batching are traced away first: the compiler sees plain operations, ours among them.
    """
    made: list[Callable[..., R]] = []

    def call(*args: Tensor) -> R:
        if not made:
            made.append(torch.compile(make_fx(function)(*args), dynamic=False))
        return made[0](*args)

    return call


def _lengths(jobs: Jobs) -> Ints:
    return np.array([len(rows) for rows in jobs.batches], dtype=np.int64)


def _by_step(steps: Ints, device: torch.device) -> dict[int, Tensor]:
    """Return which jobs begin or end at each step."""
    return {
        int(step): torch.from_numpy(np.flatnonzero(steps == step)).to(device)
        for step in np.unique(steps)
    }


class OneByOne:
    """Train each job by itself on one of the workers, the longest first."""

    def __init__(self, workers: Workers, x: Tensor, y: Tensor, sgd: Sgd) -> None:
        self.workers, self.x, self.y, self.sgd = workers, x, y, sgd

    def train(self, models: Tensor, jobs: Jobs) -> Trained:
        """Return what all jobs learnt: independent of the number of workers and of who ends first."""
        change = torch.empty((jobs.run.size, models.shape[1]), device=models.device)
        loss = torch.empty(jobs.run.size, device=models.device)

        def work(job: int) -> None:
            start = models[int(jobs.run[job])]
            trained, loss[job] = self._train_one(start, jobs.batches[job], float(jobs.mu[job]))
            change[job] = trained - start

        self.workers.map(work, np.argsort(-_lengths(jobs), kind="stable").tolist())
        return Trained(change, loss)

    def _train_one(self, start: Tensor, rows: Ints, mu: float) -> tuple[Tensor, float]:
        module = self.workers.module().train()
        anchors, weights = list(views(start, module).values()), list(module.parameters())
        with torch.no_grad():
            for weight, anchor in zip(weights, anchors, strict=True):
                weight.copy_(anchor)
        optimiser = torch.optim.SGD(
            weights, lr=self.sgd.rate, momentum=self.sgd.momentum, fused=True
        )
        order = torch.from_numpy(rows[rows >= 0]).to(start.device)
        sizes = (rows >= 0).sum(axis=1).tolist()
        total = 0.0
        for x, y in zip(
            torch.split(self.x[order], sizes), torch.split(self.y[order], sizes), strict=True
        ):
            optimiser.zero_grad()
            loss = cross_entropy(module(x), y)
            loss.backward()  # type: ignore[no-untyped-call]
            if mu:
                for weight, anchor in zip(weights, anchors, strict=True):
                    if weight.grad is not None:  # frozen, or not used by the model
                        weight.grad.add_(weight.detach() - anchor, alpha=mu)
            optimiser.step()
            total += loss.item()
        return flat_weights(module), total / len(rows)
