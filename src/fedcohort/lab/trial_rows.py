"""The records of the rounds since the last checkpoint, with a test after each round.

A GPU tests the models of a round while the host chooses and prepares the next one. The record of
a round is then completed one round later, or before a checkpoint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.lab.class_loss import class_loss, no_class_loss
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.record_checks import CLASS_LOSS, OFFICIAL
from fedcohort.lab.trial_records import make_row
from fedcohort.learning import Engine, Evaluation
from fedcohort.rounds import Record

OnRound = Callable[[int, Floats], None]  # rounds done, accuracy of every run


@dataclass(frozen=True, eq=False)
class _Unfinished:
    """A round whose test may be under way.

    Attributes:
        done: Rounds done with it.
        record: What happened in it.
        finish: Waits for the test and returns its result.
        extra: What else was asked for, by the name of its record.
    """

    done: int
    record: Record
    finish: Callable[[], Evaluation]
    extra: dict[str, Floats]


class TrialRows:
    """Tests the models after each round and keeps what is recorded of it.

    Args:
        config: Settings of the comparison, which say when to test.
        engine: Engine that trains the runs.
        width: The most clients that a run asks.
        official_samples: The data set's own test samples, or None.
        recorded: Names of the arrays to keep; all if empty.
        on_round: Called for every round with the rounds done and the accuracy of every run.
    """

    def __init__(
        self,
        config: ComparisonConfig,
        engine: Engine,
        width: int,
        official_samples: Ints | None,
        recorded: list[str],
        on_round: OnRound | None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.width = width
        self.official_samples = official_samples
        self.recorded = recorded
        self.on_round = on_round
        self._rows: list[dict[str, Any]] = []
        self._unfinished: _Unfinished | None = None

    def add(self, done: int, record: Record) -> None:
        """Complete the round before, and test the models after round number `done`."""
        self._complete()
        extra = {}
        if self.official_samples is not None:
            extra[OFFICIAL] = np.full(len(self.engine.runs), np.nan)
            if self._is_due(done, self.config.official_every):
                extra[OFFICIAL] = self.engine.evaluate(self.official_samples).accuracy
        if self.config.losses_every:
            extra[CLASS_LOSS] = no_class_loss(self.engine.runs)
            if self._is_due(done, self.config.losses_every):
                extra[CLASS_LOSS] = class_loss(self.engine)

        finish = self.engine.untested
        is_ready = True
        if self._is_due(done, self.config.evaluate_every):
            pending = self.engine.start_evaluation()
            finish = pending.finish
            is_ready = pending.is_ready
        self._unfinished = _Unfinished(done, record, finish, extra)
        if is_ready:
            self._complete()

    def take(self) -> dict[str, Any]:
        """Return the records so far, [rounds, runs, ...] by name, and forget them."""
        self._complete()
        records = {}
        for name in self._rows[0]:
            records[name] = np.stack([row[name] for row in self._rows])
        self._rows = []
        return records

    def _complete(self) -> None:
        """Wait for the test of the last round, if it is under way, and keep its record."""
        if self._unfinished is None:
            return
        last = self._unfinished
        self._unfinished = None
        row = make_row(last.record, last.finish(), self.width, self.engine.model_bytes)
        row |= last.extra
        self._rows.append({name: row[name] for name in self.recorded or row})
        if self.on_round:
            self.on_round(last.done, row["accuracy"])

    def _is_due(self, done: int, every: int) -> bool:
        return done == self.config.rounds or done % every == 0
