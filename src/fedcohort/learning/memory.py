"""Training that cannot fit the memory is refused before anything is allocated."""

from collections.abc import Sequence

import torch
from torch import nn

from fedcohort.learning.run import Run
from fedcohort.learning.sgd import Sgd
from fedcohort.memory import check_memory

INDEX_BYTES = 8
WEIGHT_BYTES = 4
COPIES_PER_RUN = 2  # model and velocity
COPIES_PER_SLOT = 3  # weights, velocity and anchor


def check_training_memory(
    modules: Sequence[nn.Module],
    runs: Sequence[Run],
    sgd: Sgd,
    slots: int | None,
    device: torch.device,
) -> None:
    """Refuse training that certainly needs more memory than there is.

    Args:
        modules: Model of each run.
        runs: The runs.
        sgd: Local optimiser, whose batches every step holds.
        slots: Number of clients that step side by side, None for a suitable number.
        device: Device that holds the weights; the memory of a GPU is not looked at.

    Raises:
        ValueError: With the bytes needed and the bytes that there are.
    """
    longest_job = max(max(samples_lined_up(run, sgd.batch_size)) for run in runs)
    batches = INDEX_BYTES * longest_job
    batches = max(batches, INDEX_BYTES * (slots or 1) * sgd.batch_size)
    weights = 0
    if device.type == "cpu":
        parameters = sum(weight.numel() for weight in modules[0].parameters())
        copies = COPIES_PER_RUN * len(runs) + COPIES_PER_SLOT * (slots or 1)
        weights = WEIGHT_BYTES * copies * parameters

    most_epochs = max(int(run.epochs.max()) for run in runs)
    check_memory(
        "epochs, batch_size, slots and the number of runs",
        f"{most_epochs} epochs, batches of {sgd.batch_size}, {slots or 'any'} slots and "
        f"{len(runs)} runs",
        needed=batches + weights,
    )


def samples_lined_up(run: Run, batch_size: int) -> list[int]:
    """Return how many samples each client of a run lines up to train, padding included.

    Args:
        run: The run.
        batch_size: Samples per step.
    """
    counts = []
    for samples, epochs in zip(run.train, run.epochs.tolist(), strict=True):
        steps = int(epochs) * -(-len(samples) // batch_size)
        counts.append(steps * batch_size)
    return counts
