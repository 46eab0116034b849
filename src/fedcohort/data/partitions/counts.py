"""How many samples of each label each client owns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_int
from fedcohort.data.samples import check_labels


def label_counts(labels: npt.ArrayLike, parts: Sequence[Ints], num_classes: int) -> Ints:
    """Count each client's samples of each label.

    Args:
        labels: Label of each sample [N].
        parts: Sample indices of each client.
        num_classes: Number of classes, C.

    Returns:
        The counts [K, C].

    Raises:
        ValueError: If a label is not below num_classes.

    Examples:
        >>> import numpy as np
        >>> from fedcohort.data import label_counts
        >>> label_counts([0, 1, 1], [np.array([0, 1]), np.array([2])], 2).tolist()
        [[1, 1], [0, 1]]
    """
    check_int("num_classes", num_classes, 1)
    y = check_labels("labels", labels, low=0, high=num_classes - 1)
    counts = np.zeros((len(parts), num_classes), np.int64)
    for client, part in enumerate(parts):
        counts[client] = np.bincount(y[part], minlength=num_classes)
    return counts
