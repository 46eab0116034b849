"""Local updates: SGD on the clients' own data, of many clients at once or one by one.

Both trainers compute the same. `BatchedTrainer` steps all slots of a schedule in one batched
operation, `SequentialTrainer` gives each job to one worker. Which is faster depends on the
model and the machine: the engine measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import local

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.sgd import sgd

from fedcohort.arrays import Ints
from fedcohort.learning.compilation import compile_by_shape, record
from fedcohort.learning.evaluation import fast_layout
from fedcohort.learning.schedule import Schedule, schedule_jobs, schedule_tightly
from fedcohort.learning.sgd import Sgd, Step, make_batched_step, make_gradients, make_step
from fedcohort.learning.slots import Slots
from fedcohort.learning.weights import flat_weights, named_weights
from fedcohort.learning.workers import Workers, multiply_adds, suitable_parts

COMPILED_SLOTS = 4  # a step is compiled for every number of slots, so there should be few
STEPS_BEFORE_RECORDING = 30  # a record takes as long as this many steps of a small model


@dataclass(frozen=True, eq=False)
class Jobs:
    """Local updates to compute, one job per client and run.

    Attributes:
        run: Run of each job, [J]: job j starts from models[run[j]].
        batches: Samples of every step of each job, J arrays [steps, B]; -1 for no sample.
        mu: Coefficient of FedProx's proximal term of each job, [J].
    """

    run: Ints
    batches: list[Ints]
    mu: Tensor

    @property
    def steps(self) -> Ints:
        """Number of steps of each job, [J]."""
        return np.array([len(rows) for rows in self.batches], dtype=np.int64)

    def subset(self, jobs: Ints) -> "Jobs":
        """Return some of the jobs."""
        batches = [self.batches[job] for job in jobs]
        return Jobs(self.run[jobs], batches, self.mu[torch.from_numpy(jobs)])


@dataclass(frozen=True, eq=False)
class LocalUpdates:
    """The results of J jobs.

    Attributes:
        change: Change of the weights by each job, [J, P] = theta_j - theta.
        loss: Mean loss over the steps of each job, [J].
    """

    change: Tensor
    loss: Tensor


class BatchedTrainer:
    """Steps many jobs at once: the mode "together".

    On a CPU each worker takes its part of the jobs, if there is enough work for several: for
    small models they would wait for Python's lock for longer than they compute.

    Args:
        workers: Threads and their copies of the model.
        x: Inputs [N, ...], on the device that trains.
        y: Labels [N], on the same device.
        sgd: Local optimiser.
        slots: Most jobs that step side by side, over all workers.
        dtype: Precision of forward and backward passes.
        compiled: Whether to compile the step.
    """

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
        self.workers = workers
        self.x = fast_layout(x.to(dtype))
        self.y = y
        self.sgd = sgd
        self.slots = slots
        self._compiled = compiled
        self._thread_local = local()
        self._parts = 1
        if workers.count > 1:
            step_work = slots * sgd.batch_size * multiply_adds(workers.module(), self.x[:1])
            self._parts = suitable_parts(step_work, workers.count)
        self._part_slots = -(-slots // self._parts)
        self._steps = 0
        self._replay: Step | None = None

    def train(self, models: Tensor, jobs: Jobs) -> LocalUpdates:
        """Train all jobs, each from its run's row of models [R, P]."""
        change = torch.empty((jobs.run.size, models.shape[1]), device=models.device)
        loss = torch.empty(jobs.run.size, device=models.device)
        worker_of_job = schedule_jobs(jobs.steps, self._parts).slot
        if models.is_cpu and self._replay is None and self._steps >= STEPS_BEFORE_RECORDING:
            self.record_step(models)

        def work(worker: int) -> None:
            own = np.flatnonzero(worker_of_job == worker)
            if not own.size:
                return
            updates = self._train_part(models, jobs.subset(own))
            rows = torch.from_numpy(own).to(models.device)
            change[rows] = updates.change
            loss[rows] = updates.loss

        self.workers.map(work, range(self._parts))
        return LocalUpdates(change, loss)

    def _train_part(self, models: Tensor, jobs: Jobs) -> LocalUpdates:
        """Train the jobs in slots.

        An idle slot repeats a step whose result nobody reads.
        """
        device = models.device
        schedule = self._schedule(jobs.steps, device)
        self._steps += schedule.length
        samples = self._samples_by_step(jobs, schedule).to(device, non_blocking=True)
        job_run = torch.from_numpy(jobs.run).to(device)
        job_slot = torch.from_numpy(schedule.slot).to(device)
        job_mu = jobs.mu.to(device)
        starting = _jobs_by_step(schedule.start, device)
        ending = _jobs_by_step(schedule.start + schedule.steps - 1, device)

        slots = self._own_slots(schedule.slots, models.shape[1])
        change = torch.empty((jobs.run.size, models.shape[1]), device=device)
        loss = torch.empty(jobs.run.size, device=device)
        for now in range(schedule.length):
            if now in starting:
                new = starting[now]
                slots.start(job_slot[new], models[job_run[new]], job_mu[new])
            slots.step(samples[now])
            if now in ending:
                done = ending[now]
                change[done] = slots.change(job_slot[done])
                loss[done] = slots.total_loss[job_slot[done]]
        return LocalUpdates(change, loss / torch.from_numpy(schedule.steps).to(device))

    def _schedule(self, steps: Ints, device: torch.device) -> Schedule:
        """Return where and when jobs run, on a CPU always with the same number of slots."""
        if device.type == "cpu":  # a record is for one number
            return schedule_jobs(steps, self._part_slots)
        multiple = COMPILED_SLOTS if self._compiled else 1
        return schedule_tightly(steps, self.slots, multiple)

    def _samples_by_step(self, jobs: Jobs, schedule: Schedule) -> Tensor:
        """Return the samples of every slot at every step, [steps, slots, B]; -1 for none."""
        shape = (schedule.length, schedule.slots, self.sgd.batch_size)
        samples = np.full(shape, -1, dtype=np.int64)
        for job, rows in enumerate(jobs.batches):
            start = schedule.start[job]
            samples[start : start + len(rows), schedule.slot[job]] = rows
        return torch.from_numpy(samples)

    def _own_slots(self, count: int, size: int) -> Slots:
        """Return this thread's slots, at least so many."""
        own: Slots | None = getattr(self._thread_local, "slots", None)
        if own is None or own.count < count:
            step = make_batched_step(self.workers.module(), self.sgd)
            if self._compiled:
                step = compile_by_shape(step)
            own = Slots(step, self.x, self.y, count, size, self.sgd.batch_size, self._compiled)
            self._thread_local.slots = own
        if self._replay is not None:
            own.take_step = self._replay
        return own

    def record_step(self, models: Tensor) -> None:
        """Record the operations of a step on a CPU, to replay them, if they are always the same."""
        slots = self._part_slots
        weights = models[:1].expand(slots, -1).clone()
        samples = torch.zeros((slots, self.sgd.batch_size), dtype=torch.int64)
        args = (weights, self.x[samples], self.y[samples], torch.ones(samples.shape))
        gradients = make_gradients(self.workers.module())
        self._replay = make_step(record(gradients, args) or gradients, self.sgd)


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
            trained, loss[job] = self._train_job(start, jobs.batches[job], float(jobs.mu[job]))
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


def _jobs_by_step(steps: Ints, device: torch.device) -> dict[int, Tensor]:
    """Return the jobs that start, or end, at each step."""
    jobs_at = {}
    for step in np.unique(steps):
        jobs = np.flatnonzero(steps == step)
        jobs_at[int(step)] = torch.from_numpy(jobs).to(device)
    return jobs_at
