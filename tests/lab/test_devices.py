"""One process per device: how it ends, well or not, and that none is left."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import shard_work
from fedcohort.lab.devices import Job, ShardFailed, run_on_devices
from fedcohort.lab.shards import Shard
from shard_work import children, is_alive, wait_until


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Let the processes of shards find `shard_work`."""
    paths = [str(Path(shard_work.__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


def jobs(folder, *works):
    count = len(works)
    return [
        Job(Shard(number, count), work, folder / "logs" / f"{number}.log")
        for number, work in enumerate(works, start=1)
    ]


def test_a_device_takes_shard_after_shard(tmp_path):
    path = tmp_path / "words"
    told = []
    works = [partial(shard_work.append, path, word) for word in ("one", "two", "three")]
    run_on_devices(jobs(tmp_path, *works), ["cpu"], lambda *words: told.append(words))
    assert path.read_text().split() == ["one", "two", "three"]
    assert told == [(f"shard {number}/3 on cpu, words", 1, 2) for number in (1, 2, 3)]
    assert not (tmp_path / "logs").exists()  # they printed nothing


def test_a_shard_that_fails_stops_the_others_and_says_why(tmp_path):
    pid_file = tmp_path / "pid"
    works = [
        partial(shard_work.fail, pid_file, ValueError("rounds must be\nat least 1, got 0")),
        partial(shard_work.hang, pid_file),
    ]
    message = "^shard 1/2 on cpu failed, and the others were stopped: rounds must be at least 1"
    with pytest.raises(ShardFailed, match=message):
        run_on_devices(jobs(tmp_path, *works), ["cpu", "cpu"])
    assert not is_alive(int(pid_file.read_text()))
    assert children(os.getpid()) == []


def test_an_error_of_ours_leaves_its_traceback_in_the_log(tmp_path):
    work = partial(shard_work.fail, tmp_path, KeyError("engine"))
    (job,) = jobs(tmp_path, work)
    with pytest.raises(ShardFailed, match=r"failed.*: KeyError: 'engine'"):
        run_on_devices([job], ["cpu"])
    assert "Traceback" in job.log.read_text()


def test_lack_of_memory_on_a_device_is_one_line_that_names_the_device(tmp_path):
    with pytest.raises(ShardFailed) as failed:
        run_on_devices(jobs(tmp_path, shard_work.lack_memory), ["cpu"])
    assert str(failed.value) == (
        "shard 1/1 on cpu failed, and the others were stopped: "
        "not enough memory: CUDA out of memory. Tried to allocate 2.00 GiB."
    )


def test_a_killed_process_is_told_by_its_signal_and_its_last_message(tmp_path):
    with pytest.raises(ShardFailed, match=r"SIGKILL.*; its last message: about to train$"):
        run_on_devices(jobs(tmp_path, shard_work.be_killed), ["cpu"])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_parent_however_that_ends(tmp_path, how):
    script = f"""
from functools import partial
from pathlib import Path
import shard_work
from fedcohort.lab.devices import Job, run_on_devices
from fedcohort.lab.shards import Shard
out = Path({str(tmp_path)!r})
jobs = [Job(Shard(n, 2), partial(shard_work.hang, out / f"pid{{n}}"), out / "log") for n in (1, 2)]
run_on_devices(jobs, ["cpu", "cpu"])
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    files = [tmp_path / "pid1", tmp_path / "pid2"]
    wait_until(lambda: all(path.exists() for path in files))
    parent.send_signal(how)
    _, said = parent.communicate()
    assert parent.returncode != 0
    assert ("KeyboardInterrupt" in said) == (how is signal.SIGINT)
    pids = [int(path.read_text()) for path in files]
    wait_until(lambda: not any(is_alive(pid) for pid in pids))
