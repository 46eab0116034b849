"""What a page is made of: plain arrays, wherever they come from. What was not recorded is None or empty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.lab.recorder import Allocations
from fedcohort.metrics import first_at, jain

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Scheme:
    """What came of one scheme, over S seeds; rounds that were not played, or not tested, are nan.

    seeds: [S] which worlds they met, to be compared with other schemes in the same; asked, successes: [S, T] updates asked for
    and used; counts: [S, K] times each client was asked, None if it is not known;
    accuracy: [S, T]; seconds: [S, T] that each round took; wasted: [S] client-seconds of updates that did not count.
    """

    seeds: Sequence[int]
    asked: Floats
    successes: Floats
    counts: Ints | None = None
    accuracy: Floats | None = None
    seconds: Floats | None = None
    wasted: Floats | None = None

    @property
    def success(self) -> Floats:
        """The share of all updates asked for that were used, [S]."""
        return np.asarray(
            np.nansum(self.successes, axis=1) / np.maximum(np.nansum(self.asked, axis=1), 1)
        )

    @property
    def fairness(self) -> Floats | None:
        """Jain's index of the times asked, [S]."""
        return None if self.counts is None else jain(self.counts)

    @property
    def final(self) -> Floats | None:
        """The accuracy in the last round, [S]; nan for a run that has not come that far."""
        return None if self.accuracy is None else self.accuracy[:, -1]

    def rounds_to(self, target: float) -> Floats | None:
        """The first round, counted from 1, that reaches an accuracy, [S]; nan if none does."""
        return None if self.accuracy is None else first_at(self.accuracy.T, target)


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a page tells of a run.

    kinds: schemes by kind of run (partition, rule, …), which differ in nothing else; rates and classes [K]: success rate of
    each class of clients and each client's class; owners: samples of each label [K, C] by partition; fates: how often each
    client came to what, by word; names: of the clients, if they have any; targets: accuracies to be reached, by kind; lead:
    sentences that go before the verdict.
    """

    title: str
    kinds: Mapping[str, Mapping[str, Scheme]]
    tables: Mapping[str, Rows] = field(default_factory=dict)
    targets: Mapping[str, Sequence[float]] = field(default_factory=dict)
    rates: Sequence[float] = ()
    classes: Ints | None = None
    allocations: Mapping[str, Allocations] = field(default_factory=dict)
    owners: Mapping[str, Ints] = field(default_factory=dict)
    fates: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    names: Sequence[str] = ()
    lead: Sequence[str] = ()
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
