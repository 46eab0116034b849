"""The engine of a comparison: models, samples and runs as its settings say."""

from collections.abc import Sequence

import numpy as np
import torch

from fedcohort.aggregation.registry import find_rule
from fedcohort.arrays import Ints
from fedcohort.data import Dataset
from fedcohort.lab.config import ComparisonConfig
from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.learning.memory import INDEX_BYTES, samples_lined_up
from fedcohort.learning.options import find_device
from fedcohort.learning.update_memory import MEMORY_TYPES
from fedcohort.memory import check_memory

WEIGHT_BYTES = 4
COPIES_PER_UPDATE = 2  # as trained, and with zeros where it is rejected


def make_engine(
    config: ComparisonConfig, data: Dataset, runs: Sequence[Run]
) -> tuple[Engine, Ints | None]:
    """Return the engine of some runs; runs of one seed start from the same model.

    Args:
        config: The settings.
        data: The data set.
        runs: The runs, a row of the batch axis each.

    Returns:
        The engine, and the positions of the official test set among its samples; None if the
        settings ask for no such test.

    Raises:
        ValueError: If the settings ask for an official test set that the data do not have, or if
            a round does not fit the memory.
    """
    scaled = data.scaled(config.scaling)
    images = scaled.x
    labels = data.y
    official_samples = None
    if config.official_every:
        if scaled.test_x is None or data.test_y is None:
            raise ValueError(
                f"official_every must be 0 for {config.dataset}, which has no test set of its "
                f"own, got {config.official_every}"
            )
        # The official test set stands behind the samples that clients own.
        first = len(labels)
        official_samples = np.arange(first, first + len(data.test_y))
        images = np.concatenate([images, scaled.test_x])
        labels = np.concatenate([labels, data.test_y])

    models = {}
    for seed in {run.seed for run in runs}:
        models[seed] = make_model(config.model, images.shape[1:], data.num_classes, seed)
    num_weights = sum(weights.numel() for weights in models[runs[0].seed].parameters())
    _check_batches_memory(config, runs)
    _check_round_memory(config, runs, num_weights)
    engine = Engine(
        [models[run.seed] for run in runs],
        torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32)),
        torch.from_numpy(labels),
        runs,
        Sgd(config.learning_rate, config.momentum, config.batch_size),
        Options(
            config.device,
            config.precision,
            config.compiled,
            config.mode,
            config.slots,
            config.max_norm,
            config.memory_precision,
        ),
    )
    return engine, official_samples


def _check_batches_memory(config: ComparisonConfig, runs: Sequence[Run]) -> None:
    """Refuse runs whose clients line up more samples in a round than fit the memory.

    Counted are the answers that a round of uniform selection gets on average. Whatever the device,
    the samples of all of them are lined up in the memory of the machine.
    """
    needed = 0.0
    for run in runs:
        samples = sum(samples_lined_up(run, config.batch_size)) / config.clients
        needed += INDEX_BYTES * samples * _mean_answers(config, run)
    check_memory(
        "epochs, batch_size, cohort and seeds",
        f"{max(config.epochs)} epochs and batches of {config.batch_size} in {len(runs)} runs "
        f"that ask {config.cohort} clients each",
        int(needed),
    )


def _mean_answers(config: ComparisonConfig, run: Run) -> float:
    """Return how many answers a round of uniform selection gets on average."""
    return config.cohort * float(np.mean(np.asarray(run.success_rates)))


def _check_round_memory(config: ComparisonConfig, runs: Sequence[Run], num_weights: int) -> None:
    """Refuse runs whose remembered updates and those of a round do not fit the memory.

    Counted are the answers that a round of uniform selection gets on average. The memory of a GPU
    is not looked at.
    """
    if find_device(config.device).type != "cpu":
        return
    remembered = 0
    answers = 0.0
    for run in runs:
        remembered += config.clients * find_rule(run.aggregation).remembers_updates
        answers += _mean_answers(config, run)

    needed = remembered * num_weights * MEMORY_TYPES[config.memory_precision].itemsize
    needed += int(answers) * num_weights * WEIGHT_BYTES * COPIES_PER_UPDATE
    check_memory(
        "clients, cohort, seeds and the model",
        f"{len(runs)} runs that ask {config.cohort} of {config.clients} clients with "
        f"{num_weights:,} weights each and remember {remembered} updates",
        needed,
    )
