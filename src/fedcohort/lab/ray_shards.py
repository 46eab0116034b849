"""Shards on an existing Ray cluster, whose nodes share the folder of the run.

Ray starts a shard again when its worker or its node dies, and the shard goes on from its last
checkpoint. If the whole cluster dies, the same command resumes.
"""

import logging
import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from fedcohort.lab.child import perform
from fedcohort.lab.devices import Job, ShardFailed
from fedcohort.lab.simulation import Progress

RETRIES = 3  # of a shard whose worker or node died
SECONDS_TO_CONNECT = 5.0
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>[^:/\s]+):(?P<port>[0-9]{1,5})", re.ASCII)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield Ray, connected to a cluster.

    Args:
        address: "host:port", "ray://host:port", or "auto" for a cluster on this machine.

    Raises:
        ValueError: If the address is of another form, or no cluster answers there.
    """
    try:
        import ray
    except ImportError:
        raise ValueError("ray must be installed: pip install 'fedcohort[ray]'") from None

    if ray.is_initialized():
        yield ray
        return
    _check_reachable(address)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's tips for its own developers
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # Ray raises many kinds.
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"ray must be the address of a running cluster, got {address!r}: {reason}"
        ) from None
    try:
        # Ray prints what happens to workers, and a command may print JSON and nothing else.
        with redirect_stdout(sys.stderr):
            yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Refuse an address where nobody answers; Ray itself would wait for minutes."""
    if address == "auto":
        return
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"ray must be auto, host:port or ray://host:port, got {address!r}")
    try:
        place = (match["host"], int(match["port"]))
        socket.create_connection(place, SECONDS_TO_CONNECT).close()
    except (OSError, UnicodeError) as error:
        raise ValueError(
            f"ray must be the address of a running cluster, got {address!r}: {error}"
        ) from None


def cluster_slots(ray: Any, device: str) -> list[int]:
    """Return how many GPUs, or on a CPU how many cores, each living node has.

    Raises:
        ValueError: If there are none.
    """
    name = "CPU" if device == "cpu" else "GPU"
    slots = []
    for node in ray.nodes():
        own = int(node["Resources"].get(name, 0)) if node["Alive"] else 0
        if own:
            slots.append(own)
    if not slots:
        raise ValueError(f"device must be one that the Ray cluster has, got {device} and no {name}")
    return slots


def cores_per_shard(cores: Sequence[int], shards: int) -> int:
    """Return the most cores that each shard can have if all shards run at once, at least 1.

    Args:
        cores: Cores of each node.
        shards: Number of shards.

    Examples:
        >>> cores_per_shard([16, 16, 16, 16], 5)
        8
    """
    for each in range(max(cores), 1, -1):
        if sum(own // each for own in cores) >= shards:
            return each
    return 1


def run_on_ray(
    ray: Any, jobs: Sequence[Job], device: str, on_progress: Progress | None = None
) -> None:
    """Train shards on a cluster.

    Args:
        ray: Ray, connected.
        jobs: The shards. Their folders must be on a file system that all nodes share.
        device: The kind of the device, cpu or cuda: a shard takes one GPU, or some cores.
        on_progress: Called with a few words, the shards done and the shards in all.

    Raises:
        ShardFailed: If a shard fails; the others were stopped by then.
    """
    slots = cluster_slots(ray, device)
    needs = {"num_cpus": 0, "num_gpus": 1}
    if device == "cpu":
        needs = {"num_cpus": cores_per_shard(slots, len(jobs)), "num_gpus": 0}
    train = ray.remote(_train).options(max_retries=RETRIES, scheduling_strategy="SPREAD", **needs)
    folder = Path.cwd()
    tasks = {}
    for job in jobs:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        tasks[train.remote(job.work, folder, job.log.parent)] = job
    try:
        _await(ray, tasks, on_progress)
    finally:
        for task in tasks:
            ray.cancel(task, force=True)


def _await(ray: Any, tasks: dict[Any, Job], on_progress: Progress | None) -> None:
    """Wait for all tasks; refuse the first that fails."""
    total = len(tasks)
    while tasks:
        (task,), _ = ray.wait(list(tasks), num_returns=1)
        job = tasks.pop(task)
        try:
            words = ray.get(task)
        except ray.exceptions.RayError as error:
            words = str(error).strip().splitlines()[-1]
        if words:
            raise ShardFailed(
                f"shard {job.shard} on Ray failed, and the others were stopped: {words}"
            )
        if on_progress is not None:
            on_progress("shards on Ray", total - len(tasks), total)


def _train(work: Callable[..., object], folder: Path, shared: Path) -> str:
    """Train a shard on a node; return what went wrong, empty if nothing did."""
    if not folder.is_dir():
        return f"every node must share the working folder, got a node without {folder}"
    os.chdir(folder)  # so that relative paths mean the same as where the command was given
    if not shared.is_dir():
        return f"every node must share the folder of the run, got a node without {shared.parent}"
    return perform(work, lambda *progress: None)
