"""Which settings suit a model and a machine, where the user leaves the choice to us.

How many jobs step side by side, and whether training together is faster than one by one.
"""

from collections.abc import Mapping
from time import perf_counter

import torch
from torch import Tensor

from fedcohort.arrays import Ints
from fedcohort.learning.trainers import BatchedTrainer, Jobs, SequentialTrainer

CPU_SLOTS = 128  # more do not help: the weights no longer fit the cache
# Slots per asked client on a CPU: fewer than answer, so that each slot gets several jobs of
# unequal length.
CPU_SLOTS_PER_ASKED = 0.35
GPU_MEMORY_FRACTION = 0.6
SLOW = 5.0  # seconds of a measurement beyond which warming up no longer counts


def suitable_slots(asked: float, steps: Ints, device: torch.device, bytes_per_slot: int) -> int:
    """Return how many jobs may step together: on a GPU as many as fit its memory.

    A round takes fewer if that is enough to end as soon as its longest job (`schedule_tightly`).

    Args:
        asked: Clients asked per round and worker, over all runs.
        steps: Number of steps that each client trains, over all runs.
        device: Device that trains.
        bytes_per_slot: Memory that one slot needs.

    Returns:
        A multiple of eight.
    """
    if device.type == "cpu":
        busy = CPU_SLOTS_PER_ASKED * asked * steps.mean() / steps.max()
        most = min(busy, CPU_SLOTS)
    else:
        most = min(asked, GPU_MEMORY_FRACTION * free_memory(device) / bytes_per_slot)
    return max(8, int(most) // 8 * 8)


def free_memory(device: torch.device) -> int:
    """Return the free bytes of a GPU, including those that PyTorch holds for later use."""
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + cached


def fastest_mode(
    trainers: Mapping[str, BatchedTrainer | SequentialTrainer], models: Tensor, jobs: Jobs
) -> str:
    """Return the name of the trainer that is the fastest for these few jobs."""
    seconds = _measure(trainers, models, jobs)
    if min(seconds.values()) < SLOW:  # the first call only warmed up
        seconds = _measure(trainers, models, jobs)
    return min(seconds, key=lambda mode: seconds[mode])


def _measure(
    trainers: Mapping[str, BatchedTrainer | SequentialTrainer], models: Tensor, jobs: Jobs
) -> dict[str, float]:
    """Return the seconds that each trainer takes."""
    seconds = {}
    for mode, trainer in trainers.items():
        start = perf_counter()
        trainer.train(models, jobs)
        seconds[mode] = perf_counter() - start
    return seconds
