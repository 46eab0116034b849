"""The world `labels`: how often a client answers depends on the labels that it owns."""

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.world.base import Conditions, World
from fedcohort.world.options import MissingData, Option, read_options
from fedcohort.world.varying import varying

OPTIONS = {"p_min": Option(0.1, 0.0, 1.0), "p_max": Option(0.9, 0.0, 1.0)}


def make_labels(conditions: Conditions) -> World:
    """Return a world in which clients answer at a rate that grows with their primary label.

    Options: `p_min` and `p_max` (success rates of clients whose primary label is the first or the
    last one, default 0.1 and 0.9). The rates of the classes are not used.
    """
    options = read_options("labels", conditions.options, OPTIONS)
    if conditions.label_counts is None:
        raise MissingData(
            "world 'labels' must know the labels that clients own, got none; "
            "`compare` deals samples to clients"
        )
    rates = label_rates(conditions.label_counts, options["p_min"], options["p_max"])
    rows = varying(lambda round: rates, conditions.num_clients, list(conditions.seeds))
    return World(rows, success_rates=rates)


def label_rates(label_counts: Ints, p_min: float, p_max: float) -> Floats:
    """Return success rates that follow the label of which a client owns the most samples.

    Args:
        label_counts: Number of samples of each label that each client owns [..., K, C].
        p_min: Rate of clients whose primary label is 0.
        p_max: Rate of clients whose primary label is C - 1. If it is the lower one, rates fall
            with the label.

    Returns:
        The rate of each client [..., K]. Of labels that a client owns equally often, the lowest
        counts; a client without samples counts as one of label 0.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.world.labels import label_rates
        >>> label_rates(np.array([[5, 0, 0], [1, 7, 0], [0, 2, 3]]), 0.1, 0.9).tolist()
        [0.1, 0.5, 0.9]
    """
    primary = label_counts.argmax(axis=-1)
    last = max(label_counts.shape[-1] - 1, 1)
    return np.asarray(p_min + (p_max - p_min) * primary / last)
