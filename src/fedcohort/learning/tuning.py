"""What suits a model and a machine: how many jobs step side by side, and whether they do at all."""

from collections.abc import Mapping
from time import perf_counter

import torch
from torch import Tensor

from fedcohort.arrays import Ints
from fedcohort.learning.local import Jobs, OneByOne, Together

CPU_SLOTS = 128  # more do not help: the weights no longer fit the cache
CPU_SLOTS_PER_ASKED = (
    0.35  # clients; fewer than answer, so that slots get several jobs of unequal length
)
GPU_SLOTS_PER_ASKED = 0.7  # a GPU wants enough at a time to be busy for a while
SLOW = 5.0  # seconds of a measurement beyond which warming up no longer counts


def slots_for(asked: float, steps: Ints, device: torch.device, bytes_per_slot: int) -> int:
    """Return how many jobs step together: as many as keep all slots busy, within memory; the same in every round.

    asked: clients per round and worker, of all runs; steps: how long each client trains.
    """
    on_cpu = device.type == "cpu"
    typical = (
        (CPU_SLOTS_PER_ASKED if on_cpu else GPU_SLOTS_PER_ASKED)
        * asked
        * steps.mean()
        / steps.max()
    )
    most = CPU_SLOTS if on_cpu else max(1, int(0.6 * free_memory(device) / bytes_per_slot))
    return max(8, int(min(typical, most)) // 8 * 8)


def free_memory(device: torch.device) -> int:
    """Return what a GPU can still hold, with what PyTorch keeps for later use."""
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + kept


def faster(ways: Mapping[str, Together | OneByOne], models: Tensor, jobs: Jobs) -> str:
    """Return the way of training that is faster for these few jobs."""

    def measured() -> dict[str, float]:
        times = {}
        for way, trainer in ways.items():
            start = perf_counter()
            trainer.train(models, jobs)
            times[way] = perf_counter() - start
        return times

    times = measured()
    if min(times.values()) < SLOW:  # the first call warms up
        times = measured()
    return min(times, key=lambda way: times[way])
