"""Scalars of each round for TensorBoard, MLflow and Weights & Biases.

A library that cannot write (a server that is down, a full disk) is warned of once and left out; it
never ends a run.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import Any

from fedcohort.flower.text import describe_error
from fedcohort.lab.trackers import TrackedRuns, WriteScalars, track_scalars

log = logging.getLogger("flwr.fedcohort")
SCALARS = ("success_ratio", "cep", "fairness", "arrived", "seconds", "deadline")
RUN = ""  # the only run of the folder


class RoundLog:
    """Writes the scalars of rounds to some libraries.

    Args:
        kinds: Names of the libraries, see `fedcohort.lab.trackers.NEEDS`.
        folder: Folder of the run; None writes nothing.
        params: What the libraries are told of the run.
        done: Number of rounds that are finished.
    """

    def __init__(
        self,
        kinds: Sequence[str] = (),
        folder: Path | None = None,
        params: Mapping[str, Any] | None = None,
        done: int = 0,
    ) -> None:
        self._writers: dict[str, WriteScalars] = {}
        self._open = ExitStack()
        if folder is None:
            return
        runs = TrackedRuns([RUN], params or {}, folder, done)
        for kind in kinds:
            try:
                self._writers[kind] = self._open.enter_context(track_scalars(kind, runs))
            except Exception as error:
                self._give_up(kind, error)

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Write what the journal holds of a round."""
        values = {f"round/{name}": row[name] for name in SCALARS if name in row}
        for client, probability in (row["probabilities"] or {}).items():
            values[f"probability/{_tag(client)}"] = probability
        self.write(row["round"], values)

    def write_metrics(self, kind: str, server_round: int, metrics: Mapping[str, Any]) -> None:
        """Write the metrics of a round, those that are one number.

        Args:
            kind: Who reports them: "train", "evaluate" or "server".
            server_round: The round.
            metrics: The metrics by name.
        """
        values = {}
        for name, value in metrics.items():
            if isinstance(value, int | float):
                values[f"{kind}/{_tag(name)}"] = value
        self.write(server_round, values)

    def write(self, server_round: int, values: Mapping[str, float]) -> None:
        """Write values by their tags."""
        scalars = {}
        for tag, value in values.items():
            if isfinite(value):
                scalars[tag] = [(server_round, float(value))]
        if not scalars:
            return
        for kind, write_scalars in list(self._writers.items()):
            try:
                write_scalars(RUN, scalars)
            except Exception as error:
                self._give_up(kind, error)

    def close(self) -> None:
        """Bring all to disk or to the servers."""
        try:
            self._open.close()
        except Exception as error:
            log.warning("the end of a log fails: %s", describe_error(error))

    def _give_up(self, kind: str, error: Exception) -> None:
        self._writers.pop(kind, None)
        log.warning("%s gets nothing from now on, the run goes on: %s", kind, describe_error(error))


def _tag(name: str) -> str:
    """Return a name that clients chose as a part of a tag that every library takes.

    MLflow refuses other letters and paths such as "..", and one odd name must not end its log.
    """
    return re.sub(r"[^\w :-]", "_", name) or "_"
