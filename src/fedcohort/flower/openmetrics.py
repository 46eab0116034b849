"""Numbers of a run as OpenMetrics text over HTTP, for Prometheus and the like.

The number of series is bounded: reasons are the few statuses of a verdict, and single clients have
series only for the first `MOST_CLIENTS` that were asked.
"""

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from fedcohort.checks import check_int
from fedcohort.flower.text import describe_error

log = logging.getLogger("flwr.fedcohort")
MOST_CLIENTS = 200  # that have series of their own
SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)  # upper ends of the histograms
LARGEST_PORT = 65535


def check_address(port: Any, host: Any) -> int | None:
    """Return the port, None for none, if there is a library to serve it.

    Raises:
        ValueError: If it is no port, the host is no text, or the library is not installed.
    """
    if not isinstance(host, str):
        raise ValueError(f"metrics_host must be a name or an address, got {host!r}")
    if port is None:
        return None
    check_int("metrics_port", port, 0, LARGEST_PORT)
    if find_spec("prometheus_client") is None:
        raise ValueError(
            "metrics_port needs prometheus_client: pip install 'fedcohort[prometheus]'"
        )
    return int(port)


class RunMetrics:
    """Counts what the journal's rows say, and serves it until `close`.

    A port that is taken is one warning; the run goes on without it.

    Args:
        port: Port to serve at; 0 takes a free one.
        host: Address to listen at.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        self._rounds = Counter("fedcohort_rounds", "Rounds that were played", **own)
        self._asked = Counter("fedcohort_asked", "Updates that were asked for", **own)
        self._arrivals = Counter("fedcohort_arrivals", "Updates that counted", **own)
        self._failures = Counter(
            "fedcohort_failures", "Updates that did not count, by reason", ["reason"], **own
        )
        self._unneeded = Counter(
            "fedcohort_unneeded", "Clients that a closed round did not wait for", **own
        )
        self._round_seconds = Histogram(
            "fedcohort_round_seconds", "Durations of rounds", buckets=SECONDS, **own
        )
        self._answer_seconds = Histogram(
            "fedcohort_answer_seconds",
            "Times after which updates that counted were sent",
            buckets=SECONDS,
            **own,
        )
        self._round = Gauge("fedcohort_round", "The last round", **own)
        self.deadline = Gauge("fedcohort_deadline_seconds", "Deadline of the last round", **own)
        self._success_ratio = Gauge(
            "fedcohort_success_ratio", "Share of the updates asked for that counted", **own
        )
        self._client_asked = Counter(
            "fedcohort_client_asked", "How often a client was asked", ["client"], **own
        )
        self._client_arrivals = Counter(
            "fedcohort_client_arrivals", "How often its update counted", ["client"], **own
        )
        self._others = Gauge(
            "fedcohort_clients_without_series", "Clients beyond the bound on series", **own
        )
        self._clients: set[str] = set()
        self._strangers: set[str] = set()
        self.port: int | None = None
        self._server: Any = None
        self._serve(port, host)

    def count(self, row: Mapping[str, Any]) -> None:
        """Count a round, as the journal holds it."""
        self._rounds.inc()
        self._round.set(row["round"])
        self._round_seconds.observe(row["seconds"])
        self._success_ratio.set(row["success_ratio"])
        if row.get("deadline") is not None:
            self.deadline.set(row["deadline"])
        for asked in row["asked"]:
            self._count_client(asked)

    def close(self) -> None:
        """Serve no longer."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _serve(self, port: int, host: str) -> None:
        from prometheus_client import start_http_server

        try:
            self._server, _ = start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            log.warning(
                "metrics_host and metrics_port must be a free address, got %s:%d: %s; "
                "the run goes on without metrics",
                host,
                port,
                describe_error(error),
            )
            return
        self.port = int(self._server.server_port)
        log.info("metrics are at http://%s:%d/metrics", host, self.port)

    def _count_client(self, asked: Mapping[str, Any]) -> None:
        status = asked["status"]
        self._asked.inc()
        if status == "arrived":
            self._arrivals.inc()
            self._answer_seconds.observe(max(0.0, float(asked.get("seconds") or 0.0)))
        elif status == "unneeded":
            self._unneeded.inc()
        else:
            self._failures.labels(status).inc()

        client = asked["client"]
        if client not in self._clients and len(self._clients) >= MOST_CLIENTS:
            if len(self._strangers) < 100 * MOST_CLIENTS:
                self._strangers.add(client)
            self._others.set(len(self._strangers))
            return
        self._clients.add(client)
        self._client_asked.labels(client).inc()
        arrivals = self._client_arrivals.labels(client)  # 0 is a value, too
        if status == "arrived":
            arrivals.inc()
