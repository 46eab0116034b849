"""Which samples each client of a comparison owns."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.data import PARTITIONS, Dataset, reserve
from fedcohort.lab.config import ComparisonConfig
from fedcohort.rng import stream


@dataclass(frozen=True, eq=False)
class Owners:
    """Which samples each client owns under one partition and seed.

    Attributes:
        train: Samples to train on, one index array per client.
        test: Samples reserved for testing, one index array per client.
    """

    train: list[Ints]
    test: list[Ints]

    @cached_property
    def test_samples(self) -> Ints:
        """The test samples of all clients, one array that all runs share."""
        return np.concatenate(self.test)

    @cached_property
    def test_owners(self) -> Ints:
        """The client that owns each of the test samples."""
        return np.repeat(np.arange(len(self.test)), [len(part) for part in self.test])


def deal_samples(config: ComparisonConfig, data: Dataset, partition: str, seed: int) -> Owners:
    """Deal the samples to the clients and reserve a part of each client's for testing.

    Raises:
        ValueError: If the data set names no owners but the partition needs them, or nothing is
            left to test on.
    """
    if partition == "by-client" and data.clients is None:
        raise ValueError(
            "partition 'by-client' needs a data set with a column of clients, got none"
        )
    options: dict[str, Any] = {}
    if partition == "by-client":
        options["clients"] = data.clients
    if partition == "primary-label":
        options["overlap"] = config.refill
    parts = PARTITIONS[partition](
        data.y,
        config.clients,
        stream(seed, "partition", partition),
        samples_per_client=config.samples_per_client,
        **options,
    )
    train, test = reserve(parts, stream(seed, "reserve", partition), config.test_fraction)
    if not any(len(part) for part in test):
        raise ValueError(f"test_fraction must leave samples to test on, got {config.test_fraction}")
    return Owners(train, test)
