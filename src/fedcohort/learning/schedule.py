"""Which job trains where and when.

A job is one client's local update in one run. Slots work side by side, one step of one job
each, and a slot that has finished a job takes its next one. Jobs have unequal lengths, so they
are packed: the longest first, each into the slot that is free the soonest. Few slots then idle.
"""

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from fedcohort.arrays import Ints


@dataclass(frozen=True, eq=False)
class Schedule:
    """Where and when each of J jobs runs.

    Attributes:
        slot: Slot of each job, [J].
        start: First step of each job, [J].
        steps: Number of steps of each job, [J].
        length: Number of steps until all jobs are done.
        slots: Number of slots.
    """

    slot: Ints
    start: Ints
    steps: Ints
    length: int
    slots: int


def schedule_jobs(steps: Ints, slots: int) -> Schedule:
    """Pack jobs into slots, the longest first, each into the slot that is free the soonest.

    Args:
        steps: Number of steps of each job, [J].
        slots: Number of slots.

    Examples:
        >>> schedule = schedule_jobs(np.array([3, 5, 1, 4, 3]), slots=2)
        >>> schedule.slot.tolist(), schedule.start.tolist(), schedule.length
        ([1, 0, 1, 1, 0], [4, 0, 7, 0, 5], 8)
    """
    slot = np.zeros(steps.size, dtype=np.int64)
    start = np.zeros(steps.size, dtype=np.int64)
    free = [(0, number) for number in range(slots)]  # (first free step, slot)
    heapify(free)

    for job in np.argsort(-steps, kind="stable"):
        start[job], slot[job] = free[0]
        end = int(start[job] + steps[job])
        heapreplace(free, (end, int(slot[job])))

    length = int((start + steps).max(initial=0))
    return Schedule(slot, start, steps, length, slots)


def schedule_tightly(steps: Ints, most: int, multiple: int = 1) -> Schedule:
    """Pack jobs into so many slots that all end with the longest job and few slots idle.

    Args:
        steps: Number of steps of each job, [J], J > 0.
        most: Most slots there may be.
        multiple: Above 1 the number of slots is a multiple of this, and one of few: each is about a
            12th above the one before.

    Examples:
        >>> schedule = schedule_tightly(np.array([4, 3, 1, 2, 2]), most=8)  # 12 steps, at most 4
        >>> schedule.slots, schedule.length
        (3, 4)
    """
    needed = -(-int(steps.sum()) // int(steps.max()))
    slots = _round_up(needed, multiple)
    best = schedule_jobs(steps, min(most, slots))
    # The fewest slots may not suffice: jobs do not fill them without gaps.
    for _ in range(2):
        if best.slots == most or best.length == int(steps.max()):
            break
        slots = _round_up(slots + 1, multiple)
        schedule = schedule_jobs(steps, min(most, slots))
        if schedule.slots * schedule.length < best.slots * best.length:
            best = schedule
    return best


def _round_up(slots: int, multiple: int) -> int:
    """Return the next number of slots that a step is compiled for, or slots if multiple is 1."""
    if multiple == 1:
        return slots
    size = multiple
    while size < slots:
        size += multiple * max(1, size // (12 * multiple))
    return size
