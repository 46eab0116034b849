"""Who follows a run beside its journal: libraries that draw curves, and metrics."""

from collections.abc import Mapping
from typing import Any

from fedcohort.flower.openmetrics import RunMetrics
from fedcohort.flower.options import RunOptions
from fedcohort.flower.round_log import RoundLog
from fedcohort.lab import folder as run_folder


class Observers:
    """The log and the metrics of one run.

    Args:
        options: The options of the run, which say whom there is.
        about: What the run says about itself.
        done: Number of rounds that are finished; the metrics count them, too.
    """

    def __init__(self, options: RunOptions, about: Mapping[str, Any], done: int) -> None:
        self.round_log = RoundLog(options.logs, options.folder, about, done)
        self.metrics: RunMetrics | None = None
        if options.metrics_port is None:
            return
        self.metrics = RunMetrics(options.metrics_port, options.metrics_host)
        if isinstance(options.deadline, float | int):
            self.metrics.deadline.set(options.deadline)
        if options.folder is not None:
            for row in run_folder.load_journal(options.folder):
                self.metrics.count(row)

    def on_row(self, row: dict[str, Any]) -> None:
        """Take notice of a round, as the journal holds it."""
        self.round_log.write_row(row)
        if self.metrics is not None:
            self.metrics.count(row)

    def on_metrics(self, kind: str, server_round: int, metrics: Mapping[str, Any]) -> None:
        """Take notice of the metrics of a round; see `RoundLog.write_metrics`."""
        self.round_log.write_metrics(kind, server_round, metrics)

    def close(self) -> None:
        """End the log, and serve no longer."""
        self.round_log.close()
        if self.metrics is not None:
            self.metrics.close()
