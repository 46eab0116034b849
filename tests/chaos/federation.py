"""A federation that can be disturbed: signals, a disk that fills, a clock that is wrong."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
SILENT_NODES = ROOT / "benchmarks" / "flower" / "silent_nodes.py"
sys.path += [str(TESTS / "flower"), str(ROOT / "examples" / "flower-quickstart")]

from deployment import command_of, query, signed  # noqa: E402
from local_federation import LocalFederation, wait_until  # noqa: E402, F401

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")  # Debian: libfaketime
DISK_SIZE = "1m"
SERVER = "flwr-serverapp"
APPS = re.compile(r"flwr-(serverapp|clientapp)|flower-superexec")


class ChaosFederation(LocalFederation):
    """A SuperLink and SuperNodes, with ways to disturb them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.more_environment = {"FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2"}
        self.disk = self.folder / "state"
        self.disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(self.disk)],
            capture_output=True,
        )
        self.has_own_disk = mounted.returncode == 0

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process that is started now."""
        return super().environment | self.more_environment

    def close(self) -> None:
        """Let stopped processes go on, end all, and give the disk back."""
        for process in self.processes.values():
            self.signal(process.pid, signal.SIGCONT)
        super().close()
        if self.has_own_disk:
            subprocess.run(["umount", str(self.disk)], check=True)
            self.has_own_disk = False

    # --- Clients ---------------------------------------------------------------------------

    def start_client(self, client: str, skew: str = "") -> None:
        """Start the SuperNode of a client, with a clock that is wrong by some seconds."""
        before = dict(self.more_environment)
        if skew:
            self.more_environment |= {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME": skew,
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        self.start_node(client_process(client), {"client-id": client, **node_config(client)})
        self.more_environment = before

    def start_silent_nodes(self, name: str, count: int) -> None:
        """Start nodes that are online and never answer."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, str(SILENT_NODES), f"127.0.0.1:{self.port}", str(count)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    # --- Processes -------------------------------------------------------------------------

    @staticmethod
    def signal(pid: int, number: signal.Signals) -> None:
        """Send a signal to a process that may be gone."""
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def alive(self) -> list[int]:
        """Return the processes of this federation, by their environment or their command line.

        Processes that have ended are reaped first. Flower's SuperExec ends when its SuperNode is
        gone, and as long as nobody reaps that, it is not.
        """
        for process in self.processes.values():
            process.poll()
        marked = set(super().alive())
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and str(self.folder) in command_of(int(entry.name)):
                marked.add(int(entry.name))
        return sorted(marked - {os.getpid()})

    def server_apps(self) -> list[int]:
        """Return the ServerApps that run now."""
        return [pid for pid in self.alive() if SERVER in command_of(pid)]

    def orphans(self) -> list[str]:
        """Return the commands of apps whose parent has ended."""
        alive = self.alive()
        commands = []
        for pid in alive:
            command = command_of(pid)
            if APPS.search(command) and parent_of(pid) not in alive:
                commands.append(command[:200])
        return commands

    def wait_for_orphans(self, seconds: float) -> list[str]:
        """Give apps without a parent some time to end; return the commands of those left."""
        end = monotonic() + seconds
        while self.orphans() and monotonic() < end:
            sleep(0.2)
        return self.orphans()

    # --- The disk of the run folder --------------------------------------------------------

    def fill_disk(self) -> None:
        """Leave no room on the disk of the run folder."""
        with (self.disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)

    def free_disk(self) -> None:
        """Make room again."""
        (self.disk / "filler").unlink(missing_ok=True)

    def remount(self, mode: str) -> bool:
        """Make the disk read-only (`ro`) or writable (`rw`); return whether that worked."""
        done = subprocess.run(["mount", "-o", f"remount,{mode}", str(self.disk)])
        return done.returncode == 0

    # --- What Flower knows of a run --------------------------------------------------------

    def nodes_online(self, now: float) -> int:
        """Return the number of nodes that Flower lists."""
        text = "select count(*) from node where status = 'online' and online_until > ?"
        return int(self.ask_database(text, now)[0][0])

    def run_status(self, run: int) -> str:
        """Return how a run stands: "under way" or "finished:" and how."""
        text = (
            "select finished_at, sub_status from run "
            "join task on primary_task_id = task_id where run.run_id = ?"
        )
        rows = self.ask_database(text, signed(run))
        if not rows:
            return "unknown"
        finished_at, how = rows[0]
        return f"finished:{how}" if finished_at else "under way"

    def run_log(self, run: int) -> str:
        """Return what the ServerApp of a run has said."""
        text = (
            "select log from run join task_logs on primary_task_id = task_id "
            "where run_id = ? order by timestamp"
        )
        lines = [line for (line,) in self.ask_database(text, signed(run))]
        return re.sub(r"\x1b\[\d+m", "", "".join(lines))

    def ask_database(self, text: str, *values: float) -> list[tuple]:
        """Query the SuperLink's database; nothing if a stopped SuperLink holds its lock."""
        try:
            return query(self, text, *values)
        except sqlite3.OperationalError:
            return []


def client_process(client: str) -> str:
    """Return the name of the process of a client."""
    return f"client-{client}"


def node_config(client: str) -> dict[str, float]:
    """Return what a client adds to the model, and how many examples it declares."""
    return {"number": 1 + int(client) / 8, "examples": 10 + int(client)}


def parent_of(pid: int) -> int:
    """Return the parent of a process, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
