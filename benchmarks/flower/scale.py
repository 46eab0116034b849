"""How rounds on Flower fare with many nodes.

    python benchmarks/flower/scale.py silent [--silent 300] [--json]
    python benchmarks/flower/scale.py simulated [--nodes 10000] [--json]

`silent` measures a deployment: six healthy clients, and nodes that are online and never answer. The
silent nodes are registered through Flower's Fleet API by one process (`silent_nodes.py`), because
300 SuperNode processes do not fit a small machine. `simulated` measures Flower's simulation engine:
start-up, seconds a round and memory of CohortStrategy, beside stock FedAvg in the same run. Needs
Linux and `pip install 'fedcohort[flower]'`.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

from fedcohort.bench.measurement import describe_machine
from fedcohort.lab.folder import load_journal

HERE = Path(__file__).parent
QUICKSTART = HERE.parents[1] / "examples" / "flower-quickstart"
sys.path.append(str(QUICKSTART))
from local_federation import LocalFederation, wait_until  # noqa: E402

HEALTHY = 6
COHORT = 4
SILENT_NODES = HERE / "silent_nodes.py"
MOST_SECONDS = 1800.0
Figures = dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure Flower with many nodes.")
    parser.add_argument("what", choices=("silent", "simulated"))
    parser.add_argument("--silent", type=int, default=300, help="nodes that never answer")
    parser.add_argument("--deadline", type=float, default=20.0, help="seconds of a round")
    parser.add_argument("--nodes", type=int, default=10_000, help="simulated nodes")
    parser.add_argument("--cohort", type=int, default=20, help="simulated nodes asked per round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all processes are ended

    with tempfile.TemporaryDirectory() as folder:
        if options.what == "silent":
            figures = measure_silent(Path(folder), options.silent, options.rounds, options.deadline)
        else:
            figures = measure_simulated(Path(folder), options.nodes, options.cohort, options.rounds)
    figures["machine"] = describe_machine()
    figures["load average at the end"] = round(os.getloadavg()[0], 1)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:<48} {value}")


def measure_silent(folder: Path, silent: int, rounds: int, deadline: float) -> Figures:
    """Measure six healthy clients beside nodes that never answer."""
    state = folder / "state"
    config = {
        "clients": HEALTHY,
        "cohort": COHORT,
        "turns": 1,
        "rounds": rounds,
        "deadline": deadline,
        "strategies": "cohort",
        "folder": str(state),
        "wait": 300.0,
    }
    with LocalFederation(folder / "federation") as federation:
        federation.start_link()
        start_silent_nodes(federation, silent)
        for client in range(HEALTHY):
            federation.start_node(f"client-{client}", {"client-id": str(client)})
        watch = ServerWatch(federation)
        status, measured = run_app(federation, config)
        watch.stop()
        if status != "finished:completed":
            status = f"{status}: {last_error(federation.log('superlink'))}"
    rows = load_journal(state) if (state / "rounds.jsonl").exists() else []
    return describe_silent(status, rows, watch, measured, silent, deadline)


def describe_silent(
    status: str,
    rows: list[dict[str, Any]],
    watch: "ServerWatch",
    measured: dict[str, Any],
    silent: int,
    deadline: float,
) -> Figures:
    """Return the figures of a run with silent nodes."""
    seconds = [row["seconds"] for row in rows]
    statuses: dict[str, int] = {}
    for row in rows:
        for asked in row["asked"]:
            statuses[asked["status"]] = statuses.get(asked["status"], 0) + 1
    begin = measured.get("begin", {}).get("cohort", [])
    return {
        "silent nodes": silent,
        "healthy clients": HEALTHY,
        "run": status,
        "deadline, s": deadline,
        "rounds, s": seconds,
        "rounds over deadline + 2 s": sum(second > deadline + 2 for second in seconds),
        "verdicts on healthy clients": statuses,
        "healthy clients lost": statuses.get("lost", 0) + statuses.get("stopped", 0),
        "until the first round is over, s": [round(second, 1) for second in begin],
        "most threads of the ServerApp": watch.threads,
        "largest memory of the ServerApp, MB": round(watch.memory / 1e6),
    }


def start_silent_nodes(federation: LocalFederation, count: int) -> None:
    """Start the process of the silent nodes and wait until all are online."""
    path = federation.folder / "silent.log"
    command = [sys.executable, str(SILENT_NODES), f"127.0.0.1:{federation.port}", str(count)]
    with path.open("wb") as log:
        federation.processes["silent"] = subprocess.Popen(
            [*command, "--seconds", str(MOST_SECONDS)],
            env=federation.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    wait_until(lambda: "ready" in path.read_text(), 300.0, f"{count} silent nodes must connect")


def measure_simulated(folder: Path, nodes: int, cohort: int, rounds: int) -> Figures:
    """Measure Flower's simulation engine, both strategies in one run."""
    config = {
        "clients": nodes,
        "cohort": cohort,
        "turns": 1,
        "rounds": rounds,
        "strategies": "stock stock cohort",  # the first one also waits for the engine to start
        "folder": str(folder / "state"),
        "wait": 600.0,
    }
    engine = f"num-supernodes={nodes} client-resources-num-cpus=1 init-args-num-cpus=2"
    with LocalFederation(folder / "federation") as federation:
        federation.start_link("--simulation")
        status, measured = run_app(federation, config, "--federation-config", engine)
        if not measured:
            raise RuntimeError(
                f"the run must complete, got {status}: {federation.log('superlink')}"
            )

    begin = measured["begin"]
    figures: Figures = {"simulated nodes": nodes, "cohort": cohort, "run": status}
    figures["start of the engine and first round, s"] = round(begin["stock"][0], 1)
    for name in ("stock", "cohort"):
        later = measured[name][-1][1:]
        figures[f"{name}: start and first round, s"] = round(begin[name][-1], 1)
        figures[f"{name}: a later round, median s"] = round(median(later), 2)
        figures[f"{name}: largest memory, MB"] = round(measured["memory"][name][-1] / 1e6)
    journal = folder / "state" / "rounds.jsonl"
    figures["journal, bytes a round"] = round(journal.stat().st_size / rounds)
    return figures


def run_app(
    federation: LocalFederation, config: dict[str, Any], *more: str
) -> tuple[str, dict[str, Any]]:
    """Run the app beside this file; return how it ended and what it measured."""
    app = federation.folder / "app"
    out = federation.folder / "measured.json"
    shutil.copytree(HERE / "app", app, ignore=shutil.ignore_patterns("__pycache__"))
    run = federation.submit(app, {**config, "out": str(out)}, *more)
    status = federation.wait(run, MOST_SECONDS)
    measured = json.loads(out.read_text()) if out.exists() else {}
    return status, measured


def last_error(log: str) -> str:
    """Return the last line of a log that names an exception."""
    lines = [line for line in log.splitlines() if re.match(r"\S*(Error|Exception)\b", line)]
    return lines[-1] if lines else "see its log"


class ServerWatch:
    """Samples the threads and the memory of the ServerApp twice a second."""

    def __init__(self, federation: LocalFederation) -> None:
        self.federation = federation
        self.threads = 0
        self.memory = 0
        self._is_over = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the sampling."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.5):
            for pid in self.federation.alive():
                self._sample(Path(f"/proc/{pid}"))

    def _sample(self, process: Path) -> None:
        try:
            if b"flwr-serverapp" not in (process / "cmdline").read_bytes():
                return
            threads = len(list((process / "task").iterdir()))
            pages = int((process / "statm").read_text().split()[1])
        except OSError:
            return
        self.threads = max(self.threads, threads)
        self.memory = max(self.memory, 4096 * pages)


if __name__ == "__main__":
    main()
