"""How large the loss is on the training data of each class of clients."""

from collections.abc import Sequence

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.learning import Engine, Run


def class_loss(engine: Engine) -> Floats:
    """Return the loss of the present models, as clients would report it before they train.

    Args:
        engine: The engine that trains the runs.

    Returns:
        Mean over the clients of each class of their mean loss, [runs, G]; nan for a class without
        clients.
    """
    runs = engine.runs
    rows = list(range(len(runs)))
    num_clients = len(runs[0].train)
    everyone = np.tile(np.arange(num_clients), (len(runs), 1))
    by_client = engine.losses(rows, everyone)

    found = no_class_loss(runs)
    for row, run in enumerate(runs):
        classes = np.zeros(num_clients, dtype=np.int64) if run.classes is None else run.classes
        for number in np.unique(classes):
            found[row, number] = by_client[row, classes == number].mean()
    return found


def no_class_loss(runs: Sequence[Run]) -> Floats:
    """Return the same for a round in which it is not recorded: nan everywhere."""
    num_classes = max(run.num_classes for run in runs)
    return np.full((len(runs), num_classes), np.nan)
