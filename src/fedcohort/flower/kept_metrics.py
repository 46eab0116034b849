"""The metrics of all rounds, as Flower returns them: bounded, saved and restored.

They are saved with every checkpoint. So what clients report must be bounded: the metrics of a
round in which one client alone arrived are as that client wrote them.
"""

import json
import logging
from typing import Any

from flwr.app import MetricRecord
from flwr.serverapp.strategy import Result

from fedcohort.files import pack_json, unpack_json
from fedcohort.flower.limits import Limits

log = logging.getLogger("flwr.fedcohort")
FIELDS = {
    "train": "train_metrics_clientapp",
    "evaluate": "evaluate_metrics_clientapp",
    "server": "evaluate_metrics_serverapp",
}
ORIGINS = {
    "train": "as clients report of training",
    "evaluate": "evaluated by clients",
    "server": "evaluated by the server",
}
# A number has up to 24 characters in JSON, and its quotes, colon, comma and spaces are six.
VALUE_BYTES = 30


class KeptMetrics:
    """Keeps the metrics of all rounds.

    Args:
        limits: Bounds of a reply. The metrics of a round may be as long in JSON as those of one
            reply whose names and numbers are the longest within the limits.

    Attributes:
        result: Flower's result object, which holds the metrics.
        evaluated: The last round that was given to clients to evaluate, whoever answered.
    """

    def __init__(self, limits: Limits) -> None:
        self.most_bytes = limits.most_metrics * (limits.longest_name + VALUE_BYTES)
        self.result = Result()
        self.evaluated = 0

    def add(self, kind: str, server_round: int, metrics: MetricRecord) -> bool:
        """Log and keep the metrics of a round; return whether they are kept.

        Args:
            kind: One of `FIELDS`. The server's own metrics are not bounded.
            server_round: The round, counted from 1; 0 is before the first one.
            metrics: Its metrics.
        """
        if kind != "server":
            size = len(json.dumps(dict(metrics)))
            if size > self.most_bytes:
                log.warning(
                    "round %d, %s: the metrics are left out, as they have %d bytes, more than %d",
                    server_round,
                    ORIGINS[kind],
                    size,
                    self.most_bytes,
                )
                return False
        log.info("round %d, %s: %s", server_round, ORIGINS[kind], metrics)
        getattr(self.result, FIELDS[kind])[server_round] = metrics
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return all metrics, and which round was evaluated last."""
        plain = {}
        for name in FIELDS.values():
            records = getattr(self.result, name)
            plain[name] = {str(round): dict(record) for round, record in records.items()}
        return {"evaluated": self.evaluated, "json": pack_json(plain)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore all; older checkpoints hold the metrics alone, or nothing."""
        result = Result()
        plain = unpack_json(state["json"]) if "json" in state else state
        for name, rounds in plain.items():
            records = getattr(result, name)
            for round, metrics in rounds.items():
                records[int(round)] = MetricRecord(metrics)
        self.result = result
        last = max(result.evaluate_metrics_clientapp, default=0)
        self.evaluated = int(state.get("evaluated", last))
