"""Each client keeps some of its own samples for testing."""

from collections.abc import Sequence

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.checks import check_range


def reserve(
    parts: Sequence[Ints], rng: np.random.Generator, fraction: float = 0.1
) -> tuple[list[Ints], list[Ints]]:
    """Split each client's samples at random into training and test parts; at least one stays for training.

    500 samples give 450 and 50 (rounded to the nearest), a single sample is trained on. A client without samples is refused.
    """
    check_range("fraction", fraction, 0, 1)
    train, test = [], []
    for client, part in enumerate(parts):
        if len(part) == 0:
            raise ValueError(
                f"every client must own at least one sample, but client {client} owns none"
            )
        count = min(int(fraction * len(part) + 0.5), len(part) - 1)
        shuffled = rng.permutation(part)
        test.append(np.sort(shuffled[:count]))
        train.append(np.sort(shuffled[count:]))
    return train, test
