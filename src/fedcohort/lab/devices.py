"""Shards on the devices of this machine, one process per device."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fedcohort.cores import usable_cores
from fedcohort.lab.shards import Shard
from fedcohort.lab.simulation import Progress

_NAME = re.compile(r"cpu|cuda(:(?P<index>[0-9]{1,4}))?", re.ASCII)
VISIBLE = "CUDA_VISIBLE_DEVICES"
SECONDS_TO_END = 10.0  # a process that was asked to end is killed after that time


class ShardFailed(ValueError):
    """A shard that could not be trained; the others were stopped, and all can be resumed."""


@dataclass(frozen=True)
class Job:
    """The work of one shard.

    Attributes:
        shard: Which shard.
        work: Trains it. It takes `on_progress` by name, and can be pickled.
        log: File for what its process prints.
    """

    shard: Shard
    work: Callable[..., object]
    log: Path


def parse_devices(names: Sequence[str]) -> str:
    """Return the kind of the devices: cpu or cuda.

    Args:
        names: Devices, one per process: "cpu", "cuda" or "cuda:1"; one may be named twice.

    Raises:
        ValueError: If a name is none of these, the kinds differ, or a GPU is not there.
    """
    if not names:
        raise ValueError("devices must be comma-separated, such as cuda:0,cuda:1, got none")
    kinds = set()
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"devices must be cpu, cuda or cuda:N each, got {name!r}")
        kinds.add(name.partition(":")[0])
    if len(kinds) > 1:
        raise ValueError(f"devices must be all cpu or all cuda, got {', '.join(names)}")
    (kind,) = kinds
    if kind == "cuda":
        _check_gpus(names)
    return kind


def _check_gpus(names: Sequence[str]) -> None:
    import torch  # Imported here: CPUs need no check.

    there = torch.cuda.device_count()  # makes no context, so the parent takes no GPU memory
    for name in names:
        if _index(name) >= there:
            last = f"cuda:0 to cuda:{there - 1}" if there else "no GPU"
            raise ValueError(f"devices must be there, {last} on this machine, got {name}")


def _index(device: str) -> int:
    match = _NAME.fullmatch(device)
    return int(match["index"] or 0) if match else 0


def run_on_devices(
    jobs: Sequence[Job], devices: Sequence[str], on_progress: Progress | None = None
) -> None:
    """Train shards on devices, one process per device at a time.

    Args:
        jobs: The shards; a device that is done takes the next one.
        devices: The devices.
        on_progress: Called with a few words, the rounds done and the rounds in all.

    Raises:
        ShardFailed: If a shard fails; its message names the device and says why. All processes
            have ended by then, as they have after Ctrl-C.
    """
    waiting = list(jobs)
    running: dict[Connection, Process] = {}
    try:
        for device in devices:
            if waiting:
                process = Process(waiting.pop(0), device, len(devices))
                running[process.connection] = process
        while running:
            for connection in wait(list(running)):
                process = running[connection]  # type: ignore[index]
                if process.is_working(on_progress):
                    continue
                del running[process.connection]
                process.check()
                if waiting:
                    process = Process(waiting.pop(0), process.device, len(devices))
                    running[process.connection] = process
    finally:
        stop([process.process for process in running.values()])


class Process:
    """The process of one shard on a device.

    Args:
        job: The shard.
        device: The device.
        sharers: How many processes share the cores of this machine.
    """

    def __init__(self, job: Job, device: str, sharers: int) -> None:
        self.job = job
        self.device = device
        self.words: str | None = None  # what went wrong, empty if nothing did
        self.connection, theirs = Pipe()
        job.log.parent.mkdir(parents=True, exist_ok=True)
        with theirs, job.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fedcohort.lab.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=child_environment(device, sharers, os.environ),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches the parent alone, which ends the others
            )
        with suppress(OSError):  # It ended already, and `check` says how.
            self.connection.send(job.work)

    def is_working(self, on_progress: Progress | None) -> bool:
        """Read one message; return whether the process goes on after it."""
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            return False
        if kind == "done":
            self.words = content
            return False
        if on_progress is not None:
            words, done, total = content
            on_progress(f"shard {self.job.shard} on {self.device}, {words}", done, total)
        return True

    def check(self) -> None:
        """Wait for the end of the process, and refuse any but a good one."""
        code = self.process.wait()
        self.connection.close()
        if self.words == "" and code == 0:
            if self.job.log.stat().st_size == 0:
                self.job.log.unlink()
                with suppress(OSError):  # not empty
                    self.job.log.parent.rmdir()
            return
        words = self.words or describe_end(code, self.job.log)
        raise ShardFailed(
            f"shard {self.job.shard} on {self.device} failed, and the others were stopped: {words}"
        )


def child_environment(device: str, sharers: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process, which sees its GPU alone, or its share of cores.

    Args:
        device: The device.
        sharers: How many processes share the cores.
        environ: The environment of this process, which may see only some GPUs itself.

    Examples:
        >>> child_environment("cuda:1", 2, {"CUDA_VISIBLE_DEVICES": "4,6"})
        {'CUDA_VISIBLE_DEVICES': '6'}
    """
    child = dict(environ)
    if device == "cpu":
        child["OMP_NUM_THREADS"] = str(max(1, usable_cores() // sharers))
        return child
    index = _index(device)
    visible = environ.get(VISIBLE)
    child[VISIBLE] = visible.split(",")[index].strip() if visible else str(index)
    return child


def describe_end(code: int, log: Path) -> str:
    """Return why a process ended that did not say so itself."""
    lines = log.read_text(errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    words = f"its process ended with code {code}"
    if code < 0:
        words = f"its process was ended by {signal.Signals(-code).name}"
    if code == -signal.SIGKILL:
        words += ", perhaps for lack of memory"
    return f"{words}; its last message: {said[-1]}" if said else words


def stop(processes: Sequence["subprocess.Popen[Any]"]) -> None:
    """End processes; their folders can go on from the last checkpoint."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
