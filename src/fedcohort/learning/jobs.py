"""A job is the local update of one client in one run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedcohort.arrays import Ints
from fedcohort.learning.batches import Batches
from fedcohort.learning.run import Run
from fedcohort.rng import stream


@dataclass(frozen=True, eq=False)
class Jobs:
    """Local updates to compute, one job per client and run.

    Attributes:
        run: Run of each job, [J]: job j starts from models[run[j]].
        batches: Samples of every step of each job, J arrays [steps, B], or `Batches` that draw
            them when they are needed; -1 for no sample.
        mu: Coefficient of FedProx's proximal term of each job, [J].
    """

    run: Ints
    batches: Sequence[Ints | Batches]
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


def make_jobs(
    runs: Sequence[Run], round: int, job_run: Ints, job_client: Ints, batch_size: int
) -> Jobs:
    """Return one job per client, each with its own stream of random batches.

    Args:
        runs: All runs.
        round: Number of the round.
        job_run: Position of each job's run, [J].
        job_client: Client of each job, [J].
        batch_size: Samples per step.
    """
    batches = []
    mu = []
    for position, client in zip(job_run.tolist(), job_client.tolist(), strict=True):
        run = runs[position]
        rng = stream(run.seed, "batches", round, client)
        batches.append(Batches(run.train[client], int(run.epochs[client]), batch_size, rng))
        mu.append(run.mu)
    return Jobs(job_run, batches, torch.tensor(mu, dtype=torch.float32))
