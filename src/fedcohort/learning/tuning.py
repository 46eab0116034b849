"""Which settings suit a model and a machine, where the user leaves the choice to us.

How many jobs step side by side, and whether training together is faster than one by one.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from fedcohort.arrays import Ints
from fedcohort.learning.jobs import Jobs
from fedcohort.learning.one_by_one import SequentialTrainer
from fedcohort.learning.run import Run
from fedcohort.learning.sgd import Sgd
from fedcohort.learning.trainers import BatchedTrainer

# On a CPU a step of many small models takes little longer than one of few.
CPU_SLOTS = 512
CPU_SLOT_BYTES = 8 * 2**30
GPU_MEMORY_FRACTION = 0.6
SLOW = 1.0  # seconds of a turn beyond which one turn decides: it is then hardly noise
TURNS = 8
TURNS_TO_WIN = 0.75
MARGIN = 0.2
SMALL_STEP = 2_000_000


def suitable_slots(asked: float, steps: Ints, device: torch.device, bytes_per_slot: int) -> int:
    """Return how many jobs may step together, within memory.

    On a CPU every round takes so many. On a GPU a round takes as few as let it end with its
    longest job (`schedule_tightly`).

    Args:
        asked: Clients asked per round, over all runs.
        steps: Number of steps that each client trains, over all runs.
        device: Device that trains.
        bytes_per_slot: Memory that one slot needs.

    Returns:
        A multiple of four on a CPU, of eight elsewhere.
    """
    if device.type == "cpu":
        busy = float(asked * steps.mean() / steps.max())
        limit = min(CPU_SLOTS, max(1, CPU_SLOT_BYTES // bytes_per_slot))
        waves = ceil(busy / limit)  # equally many jobs in each
        return 4 * ceil(busy / waves / 4)
    most = min(asked, GPU_MEMORY_FRACTION * free_memory(device) / bytes_per_slot)
    return max(8, int(most) // 8 * 8)


def choose_slots(
    runs: Sequence[Run], cohort_size: int, sgd: Sgd, sample: Tensor, model_bytes: int
) -> int:
    """Return how many jobs may step together, for the clients of some runs.

    Args:
        runs: The runs.
        cohort_size: Clients that a run asks in a round.
        sgd: Local optimiser.
        sample: One input [1, ...], on the device that trains.
        model_bytes: Size of a model.
    """
    steps = []
    for run in runs:
        for samples, epochs in zip(run.train, run.epochs.tolist(), strict=True):
            steps.append(epochs * -(-len(samples) // sgd.batch_size))
    # A generous estimate of the memory for weights, gradients and activations.
    activation_bytes = 400 * sgd.batch_size * sample.numel() * 4
    bytes_per_slot = 10 * model_bytes + activation_bytes
    return suitable_slots(cohort_size * len(runs), np.array(steps), sample.device, bytes_per_slot)


def free_memory(device: torch.device) -> int:
    """Return the free bytes of a GPU, including those that PyTorch holds for later use."""
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + cached


def fastest_mode(
    trainers: Mapping[str, BatchedTrainer | SequentialTrainer],
    models: Tensor,
    jobs: Jobs,
    preferred: str,
) -> str:
    """Return the name of the trainer that is the fastest for these few jobs.

    The trainers take turns, so that other work on the machine slows them alike.

    Args:
        trainers: The trainers, by mode.
        models: Weights of the models, [R, P].
        jobs: Jobs to measure with.
        preferred: Mode to take unless the other one is clearly faster.
    """
    seconds = _measure(trainers, models, jobs)
    if min(seconds.values()) < SLOW:  # the first turn only warms up; importing takes seconds
        for trainer in trainers.values():
            if isinstance(trainer, BatchedTrainer):
                trainer.record_step(models)
        turns = [_measure(trainers, models, jobs) for _ in range(TURNS)]
    else:
        turns = [_measure(trainers, models, jobs)]
    (other,) = trainers.keys() - {preferred}
    is_faster = is_clearly_faster(
        [turn[other] for turn in turns], [turn[preferred] for turn in turns]
    )
    return other if is_faster else preferred


def is_clearly_faster(seconds: Sequence[float], reference: Sequence[float]) -> bool:
    """Return whether one way is faster by a margin, in three quarters of the turns.

    So noise does not decide.

    Examples:
        >>> is_clearly_faster([1.0, 1.1, 9.0, 1.0], [2.0, 2.0, 2.1, 1.9])
        True
        >>> is_clearly_faster([1.9, 1.8, 2.0, 1.9], [2.0, 2.0, 2.1, 1.9])
        False
    """
    ratios = np.array(seconds) / np.array(reference)
    return bool((ratios < 1 - MARGIN).mean() >= TURNS_TO_WIN)


def preferred_mode(step_work: int) -> str:
    """Return the mode that suits a model whose step takes so many multiply-adds.

    Small models spend more time in Python than in arithmetic, unless they train together.
    """
    return "together" if step_work < SMALL_STEP else "one-by-one"


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
