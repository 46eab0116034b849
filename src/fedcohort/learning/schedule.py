"""Which job trains where and when: jobs of unequal length packed into equal slots, so that little work is wasted.

A job is one client's local update in one run. Slots work side by side, one step of one job each; a slot that has finished a job
takes up its next. Jobs are dealt longest first to the least loaded slot.
"""

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from fedcohort.arrays import Ints


@dataclass(frozen=True, eq=False)
class Schedule:
    """A packed round.

    slot, start, steps: [J] where each job runs, from which step on, and for how many; length: steps until all are done.
    """

    slot: Ints
    start: Ints
    steps: Ints
    length: int


def pack(steps: Ints, slots: int) -> Schedule:
    """Deal jobs to slots, the longest first, each to the slot that is free the soonest."""
    slot, start = np.zeros(steps.size, dtype=np.int64), np.zeros(steps.size, dtype=np.int64)
    free = [(0, place) for place in range(slots)]
    heapify(free)
    for job in np.argsort(-steps, kind="stable"):
        start[job], slot[job] = free[0]
        heapreplace(free, (int(start[job] + steps[job]), int(slot[job])))
    return Schedule(slot, start, steps, int((start + steps).max(initial=0)))


def batches(samples: Ints, epochs: int, batch_size: int, rng: np.random.Generator) -> Ints:
    """Return the samples of every step [steps, B], each epoch in a new order; -1 fills up the last batch of an epoch."""
    per_epoch = -(-samples.size // batch_size)
    order = np.full((epochs, per_epoch * batch_size), -1, dtype=np.int64)
    order[:, : samples.size] = rng.permuted(
        np.broadcast_to(samples, (epochs, samples.size)), axis=-1
    )
    return order.reshape(epochs * per_epoch, batch_size)
