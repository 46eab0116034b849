"""Shards on a Ray cluster of two nodes, whose workers are killed."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from fedcohort.lab import folder as run_folder
from fedcohort.lab import ray_shards
from fedcohort.lab.comparison import run_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.devices import ShardFailed
from fedcohort.lab.sharding import ShardWorkers, run_sharded
from shard_work import is_alive, wait_until

CONFIG = ComparisonConfig(
    selectors=("random", "e3cs-0.5"),
    partitions=("primary-label",),
    aggregations=("normalised",),
    samples_per_client=20,
    seeds=2,
    clients=12,
    cohort=4,
    rounds=24,
    checkpoint_every=1,
    epochs=(1, 2),
    mode="together",
    slots=8,
)
EXACT = ("clients", "arrived", "valid", "seconds", "wasted_seconds", "wasted_bytes")
# Ray leaves sockets and processes to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "ray must be auto, host:port or ray://host:port, got 'nonsense'"),
        ("", "ray must be auto"),
        ("host:99999", "ray must be auto"),
        ("127.0.0.1:1", "ray must be the address of a running cluster, got '127.0.0.1:1': "),
        ("ray://127.0.0.1:1", "ray must be the address of a running cluster"),
    ],
)
def test_an_address_without_a_cluster_is_refused(address, message):
    with pytest.raises(ValueError, match=message), ray_shards.connected(address):
        pass


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ValueError, match=r"ray must be installed: pip install 'fedcohort\[ray\]'"),
        ray_shards.connected("auto"),
    ):
        pass


def test_only_kinds_of_devices_are_asked_of_a_cluster():
    with pytest.raises(ValueError, match="device must be cpu or cuda on a Ray cluster, got 'auto'"):
        ShardWorkers.on_ray("auto", "auto")


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of two nodes with a core each, on this machine."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    nodes = {"num_cpus": 1, "include_dashboard": False}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=nodes)
    cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run_comparison(CONFIG, tmp_path_factory.mktemp("whole") / "run")


def find_workers():
    """Return the processes that train a shard."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(b"ray::_train"):
                found.append(int(path.parent.name))
    return found


def rounds_done(folder):
    chunks = [len(list((path / "records").glob("*.npz"))) for path in find_folders(folder)]
    return sum(chunks)


def find_folders(folder):
    return list(run_folder.find_shards(folder).values())


class Killer(Thread):
    """Kills a worker when a few rounds are played."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = folder
        self.killed = 0

    def run(self):
        wait_until(lambda: rounds_done(self.folder) >= 3 and find_workers())
        self.killed = find_workers()[0]
        os.kill(self.killed, signal.SIGKILL)
        wait_until(lambda: not is_alive(self.killed))


def assert_same(merged, whole):
    assert merged.config == whole.config
    for name, values in whole.records.items():
        if name in EXACT:
            assert np.array_equal(merged.records[name], values), name
        else:
            assert np.allclose(merged.records[name], values, atol=1e-4, equal_nan=True), name


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_goes_on(cluster, whole, tmp_path):
    killer = Killer(tmp_path / "run")
    killer.start()
    told = []
    merged = run_sharded(
        CONFIG,
        tmp_path / "run",
        ShardWorkers.on_ray(cluster.address),
        on_progress=lambda *words: told.append(words),
    )
    killer.join()
    assert killer.killed
    assert_same(merged, whole)
    assert told == [("shards on Ray", 1, 2), ("shards on Ray", 2, 2)]
    assert find_workers() == []


@pytest.mark.slow
def test_after_a_failure_the_same_command_goes_on(cluster, whole, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    workers = ShardWorkers.on_ray(cluster.address)
    killer = Killer(folder)
    killer.start()
    with monkeypatch.context() as patch:
        patch.setattr(ray_shards, "RETRIES", 0)
        with pytest.raises(ShardFailed, match=r"shard ./2 on Ray failed, .* others were stopped"):
            run_sharded(CONFIG, folder, workers)
    killer.join()
    wait_until(lambda: find_workers() == [])
    assert 3 <= rounds_done(folder) < 2 * CONFIG.rounds
    kept = {}
    for path in find_folders(folder):
        state = run_folder.load_comparison_checkpoint(path)
        if state and state["round"]:  # A chunk without its checkpoint is written again.
            first = run_folder.chunk_path(path, 0)
            kept[first] = first.stat().st_mtime_ns
    assert kept

    merged = run_sharded(CONFIG, folder, workers, resume=True)
    assert_same(merged, whole)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # not played again


@pytest.mark.slow
def test_a_mistake_in_a_shard_is_one_line(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = ComparisonConfig(**(CONFIG.as_dict() | {"samples_per_client": 10**6}))
    message = "shard ./2 on Ray failed, and the others were stopped: samples_per_client must add"
    with pytest.raises(ShardFailed, match=message):
        run_sharded(config, Path("relative"), ShardWorkers.on_ray(cluster.address))


@pytest.mark.slow
def test_a_cluster_without_gpus_is_refused(cluster, tmp_path):
    message = "device must be one that the Ray cluster has, got cuda and no GPU"
    with pytest.raises(ValueError, match=message):
        run_sharded(CONFIG, tmp_path / "run", ShardWorkers.on_ray(cluster.address, "cuda"))
