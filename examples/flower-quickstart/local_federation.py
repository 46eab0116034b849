"""A Flower federation of real processes on this machine, for demonstrations, tests and benchmarks.

All its processes have the same FLWR_HOME in their environment. This tells them apart from all other
processes, so that `close` ends also those that Flower started by itself.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
    "NO_COLOR": "1",
}
SCRIPTS = Path(sys.executable).parent
CONNECTION = "lab"  # the name of the SuperLink in Flower's configuration


class LocalFederation:
    """A SuperLink and SuperNodes; leaving the `with` block ends every process.

    Args:
        folder: Folder for logs, the database and Flower's configuration.
        insecure: Whether to connect without TLS. With TLS, the folder holds `ca.crt`.
        link: More arguments for the SuperLink, such as certificates.
        node: More arguments for every SuperNode.

    Raises:
        ValueError: If the system is not Linux, where /proc lists the processes to end.
    """

    def __init__(
        self,
        folder: Path,
        *,
        insecure: bool = True,
        link: tuple[str, ...] = (),
        node: tuple[str, ...] = (),
    ) -> None:
        if sys.platform != "linux":
            raise ValueError(
                f"LocalFederation needs Linux, where /proc lists the processes to end, "
                f"got {sys.platform}"
            )
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = self.folder / "state.db"
        self.home = self.folder / "home"
        self.home.mkdir(exist_ok=True)
        self.port = free_port()
        self.link_arguments = link
        self.node_arguments = node
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

        if insecure:
            self.security: tuple[str, ...] = ("--insecure",)
            self._write_connection("insecure = true")
        else:
            self.security = ()
            self._write_connection(f'root-certificates = "{self.folder / "ca.crt"}"')

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of this federation."""
        path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **QUIET, "FLWR_HOME": str(self.home), "PATH": path}

    def start_link(self, *arguments: str) -> None:
        """Start the SuperLink, on the same database as before, and wait until it listens."""
        self._start(
            "superlink",
            "flower-superlink",
            *self.security,
            *("--host", "127.0.0.1", "--port", str(self.port), "--database", str(self.database)),
            "--disable-runtime-dependency-installation",
            *self.link_arguments,
            *arguments,
        )
        wait_until(lambda: _listens(self.port), 60.0, f"the SuperLink must listen ({self.folder})")

    def start_node(self, name: str, config: Mapping[str, str | float], *arguments: str) -> None:
        """Start a SuperNode; it connects by itself as soon as the SuperLink is there."""
        self._start(
            name,
            "flower-supernode",
            *self.security,
            *("--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port())),
            *("--node-config", _as_toml(config)),
            *self.node_arguments,
            *arguments,
        )

    def kill(self, name: str) -> None:
        """End a process and all its children at once, as a power cut does."""
        process = self.processes.pop(name)
        for pid in {process.pid} | _descendants(process.pid):
            _kill(pid)
        process.wait()

    def stop(self, name: str) -> None:
        """Ask a process to end, as Ctrl-C does, and wait for it."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)

    def submit(self, app: Path, config: Mapping[str, Any], *arguments: str) -> int:
        """Start a run of an app and return the id of the run."""
        if config:
            arguments = ("-c", _as_toml(config), *arguments)
        answer = self.flwr("run", str(app), CONNECTION, "--format", "json", *arguments)
        if not answer.get("success") or "run-id" not in answer:
            raise ValueError(f"app must be one that Flower can run, got {app}: {answer}")
        return int(answer["run-id"])

    def status(self, run: int) -> str:
        """Return Flower's status of a run, such as "running" or "finished:completed"."""
        answer = self.flwr("list", CONNECTION, "--run-id", str(run), "--format", "json")
        return str(answer["runs"][0]["status"])

    def wait(self, run: int, seconds: float) -> str:
        """Wait until a run is finished and return its status."""

        def is_finished() -> bool:
            return self.status(run).startswith("finished")

        wait_until(is_finished, seconds, f"run {run} must finish ({self.folder})", pause=2.0)
        return self.status(run)

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """Call Flower's command line and return its JSON answer."""
        done = subprocess.run(
            [str(SCRIPTS / "flwr"), *arguments],
            env=self.environment,
            capture_output=True,
            cwd=self.folder,
        )
        text = done.stdout.decode()
        try:
            return dict(json.loads(text[text.index("{") :]))
        except ValueError:
            raise ValueError(
                f"flwr {arguments[0]} must answer in JSON, got: {text}{done.stderr.decode()}"
            ) from None

    def log(self, name: str) -> str:
        """Return all that a process has written so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def alive(self) -> list[int]:
        """Return the processes of this federation that still run, whoever started them."""
        mark = f"FLWR_HOME={self.home}".encode()
        return [pid for pid in _all_processes() if mark in _environment_of(pid).split(b"\0")]

    def close(self) -> None:
        """End every process: ask first, then kill those that are left."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        end = monotonic() + 5
        while self.alive() and monotonic() < end:
            sleep(0.1)

        while left := self.alive():
            for pid in left:
                _kill(pid)
            sleep(0.05)
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def _start(self, name: str, command: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(SCRIPTS / command), *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )

    def _write_connection(self, security: str) -> None:
        lines = [
            "[superlink]",
            f'default = "{CONNECTION}"',
            "",
            f"[superlink.{CONNECTION}]",
            f'address = "127.0.0.1:{self.port}"',
            security,
        ]
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")


def wait_until(
    condition: Callable[[], bool], seconds: float, wanted: str, pause: float = 0.1
) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: If it does not hold in time.
    """
    end = monotonic() + seconds
    while not condition():
        if monotonic() > end:
            raise TimeoutError(f"{wanted} within {seconds:g} s; see the logs")
        sleep(pause)


def free_port() -> int:
    """Return a port of this machine on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _as_toml(config: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _all_processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _descendants(pid: int) -> set[int]:
    """Return the children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for other in _all_processes():
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()
            parent = int(fields[1])
            children.setdefault(parent, []).append(other)

    descendants: set[int] = set()
    unvisited = [pid]
    while unvisited:
        found = children.get(unvisited.pop(), [])
        descendants |= set(found)
        unvisited += found
    return descendants
