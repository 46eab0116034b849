"""A Flower federation on this machine, of real processes: for demonstrations, tests, and a first look at one's own app.

Processes are told apart from all others by FLWR_HOME in their environment, so that none that Flower starts by itself escapes.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
    "NO_COLOR": "1",
}
SCRIPTS = Path(sys.executable).parent


class Loopback:
    """A SuperLink and SuperNodes in a folder of their own; leaving the `with` block ends every process.

    link, node: more arguments for every SuperLink and SuperNode, such as certificates; insecure: without TLS.
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
                f"Loopback needs Linux, where /proc tells which processes are left to be ended, got {sys.platform}"
            )
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database, self.home = self.folder / "state.db", self.folder / "home"
        self.home.mkdir(exist_ok=True)
        self.port = free_port()
        self.security = ("--insecure",) if insecure else ()
        self.link_arguments, self.node_arguments = link, node
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._write_connection(
            "insecure = true" if insecure else f'root-certificates = "{self.folder / "ca.crt"}"'
        )

    def __enter__(self) -> "Loopback":
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
        """What every process of this federation is started with."""
        return {
            **os.environ,
            **QUIET,
            "FLWR_HOME": str(self.home),
            "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
        }

    def start_link(self, *more: str) -> None:
        """Start the SuperLink, or start it again on the same database, and wait until it listens."""
        address = (
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--database",
            str(self.database),
        )
        own = ("--disable-runtime-dependency-installation", *self.link_arguments, *more)
        self._start("superlink", "flower-superlink", *self.security, *address, *own)
        self._until(lambda: _listens(self.port), 60.0, "the SuperLink must listen")

    def start_node(self, name: str, config: Mapping[str, str | float], *more: str) -> None:
        """Start a SuperNode; it connects by itself as soon as the SuperLink is there."""
        settings = " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())
        address = ("--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port()))
        self._start(
            name,
            "flower-supernode",
            *self.security,
            *address,
            "--node-config",
            settings,
            *self.node_arguments,
            *more,
        )

    def kill(self, name: str) -> None:
        """End a process and all it started, at once and without a word, as a power cut does."""
        process = self.processes.pop(name)
        family = {process.pid} | _descendants(process.pid)
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def stop(self, name: str) -> None:
        """Ask a process to end, as Ctrl-C does, and wait for it."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)

    def submit(self, app: Path, config: Mapping[str, Any], *more: str) -> int:
        """Start a run of the app and return its id."""
        settings = " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())
        answer = self.flwr(
            "run",
            str(app),
            "lab",
            "--format",
            "json",
            *(("-c", settings) if settings else ()),
            *more,
        )
        if not answer.get("success") or "run-id" not in answer:
            raise ValueError(f"app must be one that Flower can run, got {app}: {answer}")
        return int(answer["run-id"])

    def status(self, run: int) -> str:
        """Return what Flower says of a run: pending, starting, running, finished:completed, finished:failed, …"""
        runs = self.flwr("list", "lab", "--run-id", str(run), "--format", "json")["runs"]
        return str(runs[0]["status"])

    def wait(self, run: int, seconds: float) -> str:
        """Wait until the run is over and return how it ended."""
        self._until(
            lambda: self.status(run).startswith("finished"),
            seconds,
            f"run {run} must finish",
            pause=2.0,
        )
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
        """Return what a process has written so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def alive(self) -> list[int]:
        """Return the processes of this federation that still run, whoever started them."""
        mark = f"FLWR_HOME={self.home}".encode()
        return [pid for pid in _all_processes() if mark in _environment(pid).split(b"\0")]

    def close(self) -> None:
        """End every process: politely, then by force."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        end = monotonic() + 5
        while self.alive() and monotonic() < end:
            sleep(0.1)
        while left := self.alive():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
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

    def _until(self, done: Any, seconds: float, wanted: str, pause: float = 0.1) -> None:
        end = monotonic() + seconds
        while not done():
            if monotonic() > end:
                raise TimeoutError(f"{wanted} within {seconds:g} s; see the logs in {self.folder}")
            sleep(pause)

    def _write_connection(self, security: str) -> None:
        connection = f'[superlink]\ndefault = "lab"\n\n[superlink.lab]\naddress = "127.0.0.1:{self.port}"\n{security}\n'
        (self.home / "config.toml").write_text(connection)


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _all_processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _descendants(pid: int) -> set[int]:
    """Return all processes that a process started, and those they started."""
    parents: dict[int, list[int]] = {}
    for other in _all_processes():
        with suppress(OSError, ValueError, IndexError):
            parent = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(other)
    found, open_ = set(), [pid]
    while open_:
        children = parents.get(open_.pop(), [])
        found |= set(children)
        open_ += children
    return found
