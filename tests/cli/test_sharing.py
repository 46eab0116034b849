"""The flags that share seeds: what they print, and every mistake in one line."""

import json
import os
import pickle
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from fedcohort.lab import sharding
from fedcohort.lab.child import perform
from shard_work import SECONDS, children, is_alive, start, wait_until

TINY = (
    "--selectors=random", "--partitions=iid", "--aggregations=normalised", "--clients=6",
    "--cohort=2", "--samples-per-client=20", "--epochs=1", "--rounds=2", "--mode=one-by-one",
)  # fmt: skip
COMPARE = ("compare", *TINY, "--seeds=2", "--out=out")


def rows(out):
    return json.loads(out)["rows"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--devices=cpu,cpu,cpu"], "devices must be at most as many as seeds, 2, got 3"),
        (["--devices="], "devices must be comma-separated"),
        (["--devices=cpu,"], "devices must be cpu, cuda or cuda:N each, got ''"),
        (["--devices=cpu,,cpu"], "devices must be cpu, cuda or cuda:N each, got ''"),
        (["--devices=gpu"], "devices must be cpu, cuda or cuda:N each, got 'gpu'"),
        (["--devices=cpu", "--device=cpu"], "device must not be given with --devices, got 'cpu'"),
        (["--devices=cpu", "--shard=1/2"], "shard must be given without devices, got both"),
        (["--ray=auto", "--shard=1/2"], "shard must be given without ray, got both"),
        (["--shard=3/2"], "shard must be i/n with 1 <= i <= n, got 3/2"),
        (["--shard=1/3"], "shards must be at most as many as seeds, 2, got 3"),
        (["--shard="], "shard must be i/n with 1 <= i <= n, such as 2/8, got ''"),
        (["--shard=1/2", "--overwrite"], "overwrite must not be given where the seeds are shared"),
        (["--shard=1/2", "--log=tensorboard"], "log must not be given where the seeds are shared"),
        (["--ray=127.0.0.1:1"], "ray must be the address of a running cluster"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(fedcohort, flags, message):
    code, out, err = fedcohort(*COMPARE, *flags)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert not Path("out").exists()


@pytest.mark.parametrize("command", [("reproduce", "table3"), ("study", "volatility")])
def test_other_commands_refuse_the_same_mistakes(fedcohort, command):
    for flag in ("--shard=0/2", "--devices=cpu,cuda", "--ray=nowhere"):
        code, _, err = fedcohort(*command, flag, "--out=out")
        assert code == 2
        assert err.startswith(f"error: {flag.partition('=')[0].strip('-')} must be")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--devices=cpu,cpu"], "devices must not be given for figure3 alone, .* got cpu,cpu"),
        (["--ray=auto"], "ray must not be given for figure3 alone, .* got auto"),
        (["--shard=1/2"], "shard must not be given for figure3 alone, .* got 1/2"),
    ],
)
def test_a_simulation_has_no_seeds_to_share(fedcohort, flags, message):
    code, _, err = fedcohort("reproduce", "figure3", *flags, "--out=out")
    assert code == 2
    assert re.match(f"error: {message}\n", err)
    assert not Path("out").exists()


def test_devices_replace_the_device_of_a_settings_file(fedcohort):
    Path("mine.toml").write_text('device = "cuda"\nseeds = 2\n', encoding="utf-8")
    given = ("compare", "--config=mine.toml", *TINY, "--out=out", "--devices=cpu,cpu")
    code, _, err = fedcohort(*given)
    assert (code, err) == (0, "")


def test_a_flag_that_does_not_go_with_sharing_is_named_as_it_is_typed(fedcohort):
    _, _, err = fedcohort("study", "volatility", "--from=tables", "--shard=1/2")
    assert err == "error: from must not be given where the seeds are shared, got tables\n"
    _, _, err = fedcohort("reproduce", "table3", "--json", "--shard=1/2")
    assert err == "error: json must not be given where the seeds are shared, got it\n"


def test_shards_are_merged_by_the_same_command_without_the_flag(fedcohort):
    code, out, _ = fedcohort(*COMPARE, "--shard=1/2")
    assert code == 0
    assert "Shard 1/2: out/shards/1-of-2" in out
    code, _, err = fedcohort(*COMPARE)
    assert code == 2
    assert "got none of 2/2; the same command with --shard 2/2 trains it" in err
    code, out, _ = fedcohort(*COMPARE, "--shard=2/2", "--json")
    assert json.loads(out) == {
        "command": "compare",
        "folder": "out/shards/2-of-2",
        "shard": "2/2",
    }
    code, merged, _ = fedcohort(*COMPARE, "--json")
    assert code == 0
    assert Path("out/report.html").exists()
    code, whole, _ = fedcohort(*COMPARE[:-1], "--out=whole", "--json")
    assert rows(merged) == [pytest.approx(row, nan_ok=True) for row in rows(whole)]
    code, out, _ = fedcohort("report", "out")
    assert code == 0


@pytest.fixture
def _one_process(monkeypatch):
    """Train shards one after the other: tests/lab/test_sharding.py starts the processes."""

    def train(jobs, devices, on_progress):
        assert len(jobs) == len(devices) == 2
        for job in jobs:
            work = pickle.loads(pickle.dumps(job.work))  # as another process would receive it
            assert perform(work, on_progress) == ""

    monkeypatch.setattr(sharding, "run_on_devices", train)


STUDY = (
    "study", "volatility", "--rounds=2", "--seeds=2", "--worlds=labels", "--partitions=iid",
    "--selectors=random", "--aggregations=normalised,fedvarp", "--out=out",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "folder"),
    [((*COMPARE, "--checkpoint-every=1"), "out"), (STUDY, "out/runs/digits-labels-iid")],
)
def test_the_message_about_a_damaged_shard_names_a_command_that_mends_it(
    fedcohort, command, folder
):
    for number in (1, 2):
        assert fedcohort(*command, f"--shard={number}/2")[0] == 0
    checkpoint = Path(folder, "shards", "2-of-2", "checkpoint.safetensors")
    checkpoint.write_bytes(b"damaged")
    code, _, err = fedcohort(*command)
    assert code == 2
    advised = re.search("finish the shard with `fedcohort (.*)`, then merge", err)[1]
    assert advised == f"compare --out {folder} --shard 2/2 --resume --from-previous"
    assert fedcohort(*advised.split())[0] == 0
    assert fedcohort(*command)[0] == 0


def test_a_damaged_shard_without_a_good_checkpoint_is_trained_again(fedcohort):
    for number in (1, 2):
        assert fedcohort(*COMPARE, f"--shard={number}/2")[0] == 0
    shard = Path("out/shards/2-of-2")
    for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"):
        (shard / name).write_bytes(b"damaged")
    code, _, err = fedcohort(*COMPARE)
    assert code == 2
    advice = "move out/shards/2-of-2 away and train shard 2/2 again with --shard 2/2, then merge\n"
    assert err.endswith(f"; {advice}")
    shutil.move(shard, "away")
    assert fedcohort(*COMPARE, "--shard=2/2")[0] == 0
    assert fedcohort(*COMPARE)[0] == 0


@pytest.mark.usefixtures("_one_process")
@pytest.mark.parametrize("first", [(), ("--devices=cpu,cpu",)])
def test_devices_overwrite_a_run_and_leave_other_files(fedcohort, first):
    assert fedcohort(*COMPARE, *first)[0] == 0
    Path("out/notes.txt").write_text("mine")
    again = (*COMPARE, "--rounds=3", "--devices=cpu,cpu")
    code, out, _ = fedcohort(*again, "--overwrite", "--json")
    assert code == 0
    assert json.loads(out)["settings"]["rounds"] == 3
    assert Path("out/notes.txt").read_text() == "mine"
    _, shown, _ = fedcohort(*again, "--json")  # A finished run is only shown.
    assert rows(shown) == [pytest.approx(row, nan_ok=True) for row in rows(out)]


@pytest.mark.usefixtures("_one_process")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--devices=cpu,cpu,cpu"], "devices must be at most as many as seeds, 2, got 3"),
        (["--ray=127.0.0.1:1"], "ray must be the address of a running cluster"),
        (
            ["--devices=cpu,cpu", "--dataset=none.npz"],
            "dataset must be a file, got none.npz, which does not exist",
        ),
        (["--devices=cpu,cpu", "--samples-per-client=9999"], "samples_per_client must add up"),
        (["--devices=cpu,cpu", "--model=emnist-cnn"], "model must fit samples of shape"),
    ],
)
def test_a_run_is_kept_if_the_one_to_replace_it_cannot_begin(fedcohort, flags, message):
    assert fedcohort(*COMPARE)[0] == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    code, _, err = fedcohort(*COMPARE, *flags, "--overwrite")
    assert code == 2
    assert message in err
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("_one_process")
def test_a_reproduction_shares_its_seeds(fedcohort):
    command = ("reproduce", "table3", "--dataset=digits", "--rounds=2", "--seeds=2")
    command += ("--selectors=random", "--mus=0")
    assert fedcohort(*command, "--out=whole")[0] == 0
    assert fedcohort(*command, "--out=two", "--devices=cpu,cpu")[0] == 0
    for number in (1, 2):
        assert fedcohort(*command, "--out=jobs", f"--shard={number}/2")[0] == 0
    assert not Path("jobs/table3").exists()
    assert fedcohort(*command, "--out=jobs")[0] == 0
    expected = Path("whole/table3/table3.csv").read_text()
    for folder in ("two", "jobs"):
        assert Path(f"{folder}/table3/table3.csv").read_text() == expected
        assert len(list(Path(f"{folder}/runs").iterdir())) == 2  # one part per shard


@pytest.mark.usefixtures("_one_process")
def test_a_study_shares_its_seeds(fedcohort):
    command = ("study", "volatility", "--rounds=2", "--seeds=2", "--worlds=labels")
    command += ("--partitions=iid", "--selectors=random", "--aggregations=normalised,fedvarp")
    assert fedcohort(*command, "--out=whole")[0] == 0
    assert fedcohort(*command, "--out=two", "--devices=cpu,cpu")[0] == 0
    assert fedcohort(*command, "--out=jobs", "--shard=1/2")[0] == 0
    code, _, err = fedcohort(*command, "--out=jobs")
    assert code == 2
    assert "must hold all shards to merge them, got none of 2/2" in err
    assert fedcohort(*command, "--out=jobs", "--shard=2/2")[0] == 0
    assert fedcohort(*command, "--out=jobs")[0] == 0
    expected = Path("whole/runs.csv").read_text()
    for folder in ("two", "jobs"):
        assert Path(f"{folder}/runs.csv").read_text() == expected


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_leaves_shards_that_go_on(fedcohort):
    flags = (*COMPARE[:-1], "--rounds=400", "--checkpoint-every=1", "--devices=cpu,cpu", "--out=c")
    words = [sys.executable, "-m", "fedcohort", *flags]
    parent = start(words)
    wait_until(lambda: all(Path(f"c/shards/{n}-of-2/records/0000001.npz").exists() for n in (1, 2)))
    processes = children(parent.pid)
    assert len(processes) == 2
    os.kill(parent.pid, signal.SIGINT)
    _, err = parent.communicate(timeout=SECONDS)
    assert parent.returncode == 130
    assert err.startswith("error: interrupted")
    assert not any(is_alive(pid) for pid in processes)
    code, _, err = fedcohort("compare", "--out=c", "--resume")
    assert code == 2
    assert "must hold finished shards to merge them, got shard 1/2 at round " in err
