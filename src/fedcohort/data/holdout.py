"""Test data of each client: a part of its own samples that is never trained on."""

from collections.abc import Sequence

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.checks import check_range


def reserve(
    parts: Sequence[Ints], rng: np.random.Generator, fraction: float = 0.1
) -> tuple[list[Ints], list[Ints]]:
    """Split each client's samples at random into training and test samples.

    Args:
        parts: Sample indices of each client.
        rng: Generator that draws the test samples.
        fraction: Part of each client's samples to test on, rounded to whole samples. At least one
            sample stays for training.

    Returns:
        The training samples of each client, and the test samples of each client, ascending.

    Raises:
        ValueError: If a client owns no sample, or the fraction lies outside [0, 1].

    Examples:
        >>> import numpy as np
        >>> from fedcohort import stream
        >>> from fedcohort.data import reserve
        >>> train, test = reserve([np.arange(500)], stream(0, "reserve"))
        >>> len(train[0]), len(test[0])
        (450, 50)
    """
    check_range("fraction", fraction, 0, 1)
    train = []
    test = []
    for client, part in enumerate(parts):
        if len(part) == 0:
            raise ValueError(
                f"every client must own at least one sample, but client {client} owns none"
            )
        rounded = int(fraction * len(part) + 0.5)
        test_size = min(rounded, len(part) - 1)
        shuffled = rng.permutation(part)
        test.append(np.sort(shuffled[:test_size]))
        train.append(np.sort(shuffled[test_size:]))
    return train, test
