"""Which samples each client of a comparison owns."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedcohort.arrays import Ints
from fedcohort.checks import shown
from fedcohort.data import PARTITIONS, Dataset, reserve
from fedcohort.lab.config import ComparisonConfig
from fedcohort.references import make_own, resolve
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
        ValueError: If the data set names no owners but the partition needs them, a partition of
            one's own gives something else than samples, or nothing is left to test on.
    """
    if partition == "by-client" and data.clients is None:
        raise ValueError(
            "partition 'by-client' needs a data set with a column of clients, got none"
        )
    if partition in PARTITIONS:
        _check_clients(config, data, partition)
    rng = stream(seed, "partition", partition)
    options: dict[str, Any] = {}
    if partition == "by-client":
        options["clients"] = data.clients
    if partition == "primary-label":
        options["overlap"] = config.refill
    deal = resolve("partition", partition, PARTITIONS)
    if partition in PARTITIONS:
        size = config.samples_per_client
        parts = deal(data.y, config.clients, rng, samples_per_client=size, **options)
    else:
        about = f"partition {partition!r}"
        own = make_own(about, deal, list, data.y, config.clients, rng, config.samples_per_client)
        parts = _check_parts(about, own, config.clients, len(data.y))
    train, test = reserve(parts, stream(seed, "reserve", partition), config.test_fraction)
    if not any(len(part) for part in test):
        if config.samples_per_client is not None and config.test_fraction > 0:
            raise ValueError(
                f"samples_per_client must leave a test sample at test_fraction "
                f"{config.test_fraction:g}, got {config.samples_per_client}"
            )
        largest = max(len(part) for part in parts)
        raise ValueError(
            "test_fraction must leave a test sample, and none of the "
            f"{config.clients} clients owns more than {largest} of the samples, "
            f"got {config.test_fraction:g}"
        )
    return Owners(train, test)


def _check_clients(config: ComparisonConfig, data: Dataset, partition: str) -> None:
    """Refuse more clients than there are samples, or owners, to deal to them."""
    most = len(data.y)
    what = "samples"
    if partition == "by-client":
        most = len(np.unique(np.asarray(data.clients)))
        what = "owners"
    shares_samples = partition == "primary-label" and config.refill
    if shares_samples and config.samples_per_client is not None:
        return
    if config.clients > most:
        raise ValueError(
            f"clients must be at most {most}, the {what} in {config.dataset}, got {config.clients}"
        )


def _check_parts(about: str, parts: list[Any], clients: int, samples: int) -> list[Ints]:
    """Refuse what a user's partition returns unless it is samples of each client."""
    if len(parts) != clients:
        raise ValueError(f"{about} must give samples to {clients} clients, got {len(parts)}")
    checked = []
    for client, part in enumerate(parts):
        indices = np.asarray(part)
        is_list = indices.ndim == 1 and indices.size > 0
        if not is_list or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(
                f"{about} must give client {client} a list of at least one index, got {shown(part)}"
            )
        if indices.min() < 0 or indices.max() >= samples:
            raise ValueError(
                f"{about} must give client {client} indices from 0 to {samples - 1}, got "
                f"{indices.min()} to {indices.max()}"
            )
        different = len(np.unique(indices))
        if different < len(indices):  # one copy could train and another one test
            raise ValueError(
                f"{about} must give client {client} every sample once at most, got "
                f"{len(indices)} indices of {different} samples"
            )
        checked.append(indices.astype(np.int64))
    return checked
