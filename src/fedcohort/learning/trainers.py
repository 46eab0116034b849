"""Local updates of many clients at once: all slots of a schedule step in one operation.

`one_by_one.SequentialTrainer` computes the same and gives each job to one worker. Which is faster
depends on the model and the machine: the engine measures.
"""

from threading import local

import numpy as np
import torch
from torch import Tensor

from fedcohort.arrays import Ints
from fedcohort.learning.compilation import compile_by_shape, record
from fedcohort.learning.evaluation import fast_layout
from fedcohort.learning.jobs import Jobs, LocalUpdates
from fedcohort.learning.schedule import Schedule, schedule_jobs, schedule_tightly
from fedcohort.learning.sgd import Sgd, Step, make_batched_step, make_gradients, make_step
from fedcohort.learning.slots import Slots
from fedcohort.learning.transfer import upload
from fedcohort.learning.workers import Workers, multiply_adds, suitable_parts

COMPILED_SLOTS = 4  # a step is compiled for every number of slots, so there should be few
STEPS_DRAWN_TOGETHER = 12  # whose samples go to a GPU in one piece, while it computes
STEPS_BEFORE_RECORDING = 30  # a record takes as long as this many steps of a small model


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
        if models.is_cpu and self._replay is None and self._steps >= STEPS_BEFORE_RECORDING:
            self.record_step(models)
        if self._parts == 1:
            (updates,) = self.workers.map(lambda own: self._train_part(models, own), [jobs])
            return updates
        change = torch.empty((jobs.run.size, models.shape[1]), device=models.device)
        loss = torch.empty(jobs.run.size, device=models.device)
        worker_of_job = schedule_jobs(jobs.steps, self._parts).slot

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
        job_run = upload(jobs.run, device)
        job_slot = upload(schedule.slot, device)
        job_mu = upload(jobs.mu.numpy(), device)
        job_steps = upload(schedule.steps, device)
        starting = _jobs_by_step(schedule.start, device)
        ending = _jobs_by_step(schedule.start + schedule.steps - 1, device)

        slots = self._own_slots(schedule.slots, models.shape[1])
        change = torch.empty((jobs.run.size, models.shape[1]), device=device)
        loss = torch.empty(jobs.run.size, device=device)
        block = schedule.length if device.type == "cpu" else STEPS_DRAWN_TOGETHER
        for now in range(schedule.length):
            if now % block == 0:
                samples = self._samples_by_step(jobs, schedule, now, now + block, device)
            if now in starting:
                new = starting[now]
                slots.start(job_slot[new], models[job_run[new]], job_mu[new])
            slots.step(samples[now % block])
            if now in ending:
                done = ending[now]
                change[done] = slots.change(job_slot[done])
                loss[done] = slots.total_loss[job_slot[done]]
        return LocalUpdates(change, loss / job_steps)

    def _schedule(self, steps: Ints, device: torch.device) -> Schedule:
        """Return where and when jobs run, on a CPU always with the same number of slots."""
        if device.type == "cpu":  # a record is for one number
            return schedule_jobs(steps, self._part_slots)
        multiple = COMPILED_SLOTS if self._compiled else 1
        return schedule_tightly(steps, self.slots, multiple)

    def _samples_by_step(
        self, jobs: Jobs, schedule: Schedule, first: int, last: int, device: torch.device
    ) -> Tensor:
        """Return the samples of every slot from one step to another, [steps, slots, B].

        -1 stands for no sample.
        """
        last = min(last, schedule.length)
        samples = np.full((last - first, schedule.slots, self.sgd.batch_size), -1, dtype=np.int64)
        ends = schedule.start + schedule.steps
        for job in np.flatnonzero((schedule.start < last) & (ends > first)).tolist():
            start = int(schedule.start[job])
            rows = jobs.batches[job][max(first - start, 0) : last - start]
            begin = max(start - first, 0)
            samples[begin : begin + len(rows), schedule.slot[job]] = rows
        return upload(samples, device)

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


def _jobs_by_step(steps: Ints, device: torch.device) -> dict[int, Tensor]:
    """Return the jobs that start, or end, at each step."""
    order = np.argsort(steps, kind="stable")
    jobs = upload(order, device)
    numbers, firsts = np.unique(steps[order], return_index=True)
    parts = torch.tensor_split(jobs, firsts[1:].tolist())
    return dict(zip(numbers.tolist(), parts, strict=True))
