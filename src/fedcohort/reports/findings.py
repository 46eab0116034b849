"""Results in the form that charts and pages need, whatever their source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Floats, Ints
from fedcohort.lab.recorder import Allocations
from fedcohort.metrics import first_at, jain
from fedcohort.reports.answer import Answer
from fedcohort.statistics import mean_of_known

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class SchemeResults:
    """The results of one scheme in S runs of T rounds, which differ in their seed alone.

    Rounds that were not played or not tested are nan. Quantities that were not recorded are None.

    Attributes:
        seeds: [S] the seeds. Runs of two schemes with the same seed met the same failures.
        asked: [S, T] number of updates asked for.
        successes: [S, T] number of updates used.
        counts: [S, K] times each client was asked.
        accuracy: [S, T] test accuracy.
        seconds: [S, T] length of each round.
        wasted: [S] client-seconds spent on updates that did not count.
        class_accuracy: [S, G] accuracy in the last round for each class of clients, nan for a
            class without test samples.
        label_accuracy: [S, L] the same for each label.
    """

    seeds: Sequence[int]
    asked: Floats
    successes: Floats
    counts: Ints | None = None
    accuracy: Floats | None = None
    seconds: Floats | None = None
    wasted: Floats | None = None
    class_accuracy: Floats | None = None
    label_accuracy: Floats | None = None

    @property
    def success(self) -> Floats:
        """The share of all updates asked for that were used, [S]."""
        asked = np.nansum(self.asked, axis=1)
        return np.asarray(np.nansum(self.successes, axis=1) / np.maximum(asked, 1))

    @property
    def success_so_far(self) -> Floats:
        """The same after each round, [S, T]."""
        asked = np.maximum(np.cumsum(self.asked, axis=1), 1)
        return np.asarray(self.participation / asked)

    @property
    def participation(self) -> Floats:
        """Cumulative effective participation: updates used so far, [S, T]."""
        return np.cumsum(self.successes, axis=1)

    @property
    def fairness(self) -> Floats | None:
        """Jain's index of the times asked, [S]."""
        if self.counts is None:
            return None
        return jain(self.counts)

    @property
    def final_accuracy(self) -> Floats | None:
        """Accuracy in the last round, [S], nan for a run that was not played that far."""
        if self.accuracy is None:
            return None
        return self.accuracy[:, -1]

    @property
    def class_means(self) -> Floats:
        """The mean over seeds of the accuracy for each class of clients, [G]."""
        assert self.class_accuracy is not None
        return mean_of_known(self.class_accuracy)

    def rounds_to(self, target: float) -> Floats | None:
        """Return the first round with an accuracy, [S], counted from 1 and nan if there is none.

        Args:
            target: The accuracy to reach.
        """
        if self.accuracy is None:
            return None
        return first_at(self.accuracy.T, target)


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that a page shows about a run.

    Attributes:
        title: Heading of the page.
        kinds: Schemes by kind of run, the hardest first. The runs of one kind differ in scheme
            and seed alone.
        answer: The first screen. Without one, the first sentence of the lead stands there.
        tables: Rows by title.
        targets: Accuracies to reach, by kind of run.
        rates: Success rate of each class of clients.
        classes: [K] class of each client, None if clients have no classes.
        class_rates: How often the clients of each class answer, for `SchemeResults.class_accuracy`.
        allocations: Recorded probabilities of being asked, by scheme.
        owners: Number of samples [K, C] of each client and label, by partition.
        outcomes: What came of asking each client: number of times, by client and outcome.
        client_names: Names of the clients, if they have any.
        lead: Sentences before the verdict.
        said: Sentences by topic, beside those that every page makes from its schemes.
        notes: Sentences below the tables.
        settings: Settings by name.
        seeds: The seeds in words.
        environment: Versions and machine, by name.
    """

    title: str
    kinds: Mapping[str, Mapping[str, SchemeResults]]
    answer: Answer | None = None
    tables: Mapping[str, Rows] = field(default_factory=dict)
    targets: Mapping[str, Sequence[float]] = field(default_factory=dict)
    rates: Sequence[float] = ()
    classes: Ints | None = None
    class_rates: Sequence[float] = ()
    allocations: Mapping[str, Allocations] = field(default_factory=dict)
    owners: Mapping[str, Ints] = field(default_factory=dict)
    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    client_names: Sequence[str] = ()
    lead: Sequence[str] = ()
    said: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def collect(
        self, quantity: Callable[[SchemeResults], npt.NDArray[Any] | None]
    ) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return a quantity by kind of run and scheme, where it was recorded.

        Args:
            quantity: Takes a scheme and returns an array, or None if it was not recorded.
        """
        found: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for kind, schemes in self.kinds.items():
            found[kind] = {}
            for name, scheme in schemes.items():
                values = quantity(scheme)
                if values is not None:
                    found[kind][name] = values
        return found
