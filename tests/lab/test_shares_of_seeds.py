"""Which seeds a shard has, and how devices are named."""

import pytest

from fedcohort.cores import usable_cores
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.devices import child_environment, describe_end, parse_devices
from fedcohort.lab.ray_shards import cores_per_shard
from fedcohort.lab.runs import run_keys
from fedcohort.lab.shards import Shard, describe_differences, parse_shard, shard_config


def seeds(config):
    return list(range(config.first_seed, config.first_seed + config.seeds))


@pytest.mark.parametrize("first", [0, 17])
@pytest.mark.parametrize("count", range(1, 8))
def test_shards_share_all_seeds_evenly_and_in_order(count, first):
    whole = ComparisonConfig(seeds=7, first_seed=first)
    parts = [shard_config(whole, Shard(number, count)) for number in range(1, count + 1)]
    joined = [seed for part in parts for seed in seeds(part)]
    assert joined == seeds(whole)
    sizes = [part.seeds for part in parts]
    assert max(sizes) - min(sizes) <= 1
    runs = [key for part in parts for key in run_keys(part)]
    assert len(runs) == len(set(runs))
    assert set(runs) == set(run_keys(whole))


def test_a_shard_differs_from_the_whole_in_its_seeds_alone():
    whole = ComparisonConfig(seeds=5, rounds=9)
    part = shard_config(whole, Shard(2, 2))
    assert describe_differences(part, whole) == "seeds 2, not 5; first_seed 3, not 0"


@pytest.mark.parametrize(
    "text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "½/1", "1.0/2"]
)
def test_other_words_are_no_shard(text):
    with pytest.raises(ValueError, match="shard must be i/n with 1 <= i <= n"):
        parse_shard(text)


def test_a_shard_is_read_as_it_is_written():
    assert parse_shard(str(Shard(3, 12))) == Shard(3, 12)


def test_more_shards_than_seeds_are_refused():
    with pytest.raises(ValueError, match="shards must be at most as many as seeds, 3, got 4"):
        shard_config(ComparisonConfig(seeds=3), Shard(1, 4))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "devices must be comma-separated"),
        (["tpu"], "devices must be cpu, cuda or cuda:N each, got 'tpu'"),
        (["cpu:1"], "got 'cpu:1'"),
        (["cpu", "cuda"], "devices must be all cpu or all cuda, got cpu, cuda"),
        (["cuda:9999"], "devices must be there, .* got cuda:9999"),
    ],
)
def test_other_devices_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        parse_devices(names)


def test_a_process_sees_its_own_gpu_alone():
    environ = {"A": "b"}
    assert child_environment("cuda:3", 4, environ) == {"A": "b", "CUDA_VISIBLE_DEVICES": "3"}
    environ["CUDA_VISIBLE_DEVICES"] = "GPU-aa, GPU-bb"
    assert child_environment("cuda:1", 4, environ)["CUDA_VISIBLE_DEVICES"] == "GPU-bb"
    assert child_environment("cuda", 4, environ)["CUDA_VISIBLE_DEVICES"] == "GPU-aa"


@pytest.mark.parametrize(("given", "cores"), [("", 8), ("5", 5), ("4,2", 4), ("0", 8), ("x", 8)])
def test_processes_on_cpus_share_the_cores_that_this_one_may_use(monkeypatch, given, cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert usable_cores() == cores
    assert child_environment("cpu", 3, {})["OMP_NUM_THREADS"] == str(cores // 3)
    assert child_environment("cpu", 30, {})["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("cores", "shards", "each"),
    [([4, 4], 2, 4), ([16] * 4, 5, 8), ([16, 2], 2, 8), ([1, 1], 2, 1), ([1], 9, 1), ([8], 3, 2)],
)
def test_shards_on_ray_have_as_many_cores_as_let_all_run_at_once(cores, shards, each):
    assert cores_per_shard(cores, shards) == each


def test_the_end_of_a_process_is_told_with_its_last_message(tmp_path):
    log = tmp_path / "log"
    log.write_text("first\nlast words\n\n")
    assert describe_end(3, log) == "its process ended with code 3; its last message: last words"
    log.write_text("")
    assert describe_end(-15, log) == "its process was ended by SIGTERM"
    assert "SIGKILL, perhaps for lack of memory" in describe_end(-9, log)
