"""Slots: models that step side by side, each on a job of its own.

All slots take a step in one call. On a GPU the operations of a step are recorded once for every
number of slots, as a CUDA graph, and then replayed: starting them one by one would take the host
longer than a small number of slots computes.
"""

import torch
from torch import Tensor

from fedcohort.learning.sgd import Step


class Slots:
    """The state of some slots, on the device that trains.

    Args:
        step: Step of many models, which changes their state in place.
        x: Inputs of all samples, [N, ...], in the precision of the passes.
        y: Labels of all samples, [N].
        count: Number of slots, S.
        size: Number of weights of a model, P.
        batch_size: Samples per step, B.
        recorded: Whether to record the step as a CUDA graph.
    """

    def __init__(
        self,
        step: Step,
        x: Tensor,
        y: Tensor,
        count: int,
        size: int,
        batch_size: int,
        recorded: bool,
    ) -> None:
        device = x.device
        self.count = count
        self.take_step = step
        self._x = x
        self._y = y
        self.weights = torch.zeros((count, size), device=device)
        # Empty if nothing is rounded: no two arguments of a compiled step may share memory.
        rounds = x.dtype != self.weights.dtype
        self._rounded = torch.zeros((count, rounds * size), dtype=x.dtype, device=device)
        self.velocity = torch.zeros_like(self.weights)
        self.anchor = torch.zeros_like(self.weights)
        self.mu = torch.zeros(count, device=device)
        self.total_loss = torch.zeros(count, device=device)
        self._samples = torch.zeros((count, batch_size), dtype=torch.int64, device=device)
        self._recorded = recorded
        self._states: dict[int, tuple[Tensor, ...]] = {}
        self._warm: set[int] = set()
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def start(self, slots: Tensor, weights: Tensor, mu: Tensor) -> None:
        """Start a job in each of n slots, from weights [n, P] and with mu [n]."""
        self.weights[slots] = weights
        if self._rounded.shape[1]:
            self._rounded[slots] = weights.to(self._rounded.dtype)
        self.anchor[slots] = weights
        self.velocity[slots] = 0.0
        self.total_loss[slots] = 0.0
        self.mu[slots] = mu

    def step(self, samples: Tensor) -> None:
        """Take a step in the first n slots, on samples [n, B]; -1 for no sample."""
        count = len(samples)
        if not self._recorded:
            self.take_step(*self._state(count), samples)
            return
        self._samples[:count] = samples
        if count not in self._warm:  # what a graph records must have run before
            self._compute(count)
            self._warm.add(count)
        else:
            if count not in self._graphs:
                self._graphs[count] = self._record(count)
            self._graphs[count].replay()

    def change(self, slots: Tensor) -> Tensor:
        """Return the change of the weights since the jobs in n slots started, [n, P]."""
        return self.weights[slots] - self.anchor[slots]

    def _compute(self, count: int) -> None:
        self.take_step(*self._state(count), self._samples[:count])

    def _state(self, count: int) -> tuple[Tensor, ...]:
        """Return what a step of the first n slots takes beside its samples."""
        if count not in self._states:
            parts = (self.weights, self._rounded, self.velocity, self.anchor, self.mu)
            views = [part[:count] for part in (*parts, self.total_loss)]
            self._states[count] = (*views, self._x, self._y)
        return self._states[count]

    def _record(self, count: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        pool = None
        if self._graphs:  # graphs never run side by side, so they share their memory
            pool = next(iter(self._graphs.values())).pool()
        with torch.cuda.graph(graph, pool=pool):
            self._compute(count)
        return graph
