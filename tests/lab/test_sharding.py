"""Shards of a comparison: trained apart, merged into an ordinary run folder."""

import os
import shutil
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedcohort.lab import folder as run_folder
from fedcohort.lab import sharding
from fedcohort.lab.comparison import load_comparison, run_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.devices import ShardFailed
from fedcohort.lab.sharding import ShardWorkers, run_shard, run_sharded
from fedcohort.lab.shards import Shard
from fedcohort.lab.summary import comparison_rows
from shard_work import children

# One way of training, so that results differ by rounding at most.
CONFIG = ComparisonConfig(
    selectors=("random", "e3cs-0.5"),
    partitions=("iid", "primary-label"),
    aggregations=("fedvarp",),
    samples_per_client=20,
    seeds=3,
    first_seed=5,
    clients=12,
    cohort=4,
    rounds=6,
    checkpoint_every=4,
    epochs=(1, 2),
    mode="together",
    slots=8,
)
WORLDS = {
    "classes": {},
    "labels": {"world": "labels"},  # who is in which quarter depends on who owns what
    # Some of these seeds lack a quarter that others have.
    "fewer clients": {
        "world": "labels",
        "clients": 5,
        "cohort": 2,
        "first_seed": 1,
        "losses_every": 2,
    },
    "offline": {"world": "groups", "knows_offline": True},
}
EXACT = ("clients", "arrived", "valid", "seconds", "wasted_seconds", "wasted_bytes")


def train_shards(config, folder, count):
    for number in range(1, count + 1):
        run_shard(config, folder, Shard(number, count))


def assert_same(merged, whole):
    """Check that cohorts are equal exactly, and what was learnt up to rounding."""
    assert merged.config == whole.config
    assert list(merged.records) == list(whole.records)
    for name, values in whole.records.items():
        assert merged.records[name].dtype == values.dtype
        if name in EXACT:
            assert np.array_equal(merged.records[name], values), name
        else:
            assert np.allclose(merged.records[name], values, atol=1e-4, equal_nan=True), name
    assert merged.class_rates == pytest.approx(whole.class_rates)
    for name, counts in whole.label_counts.items():
        assert np.array_equal(merged.label_counts[name], counts)
    assert set(merged.allocations) == set(whole.allocations)
    for name, expected in whole.allocations.items():
        found = merged.allocations[name]
        assert np.array_equal(found.rounds, expected.rounds)
        assert np.allclose(found.inclusion, expected.inclusion)
    assert set(merged.provenance) == set(whole.provenance)
    assert merged.provenance["data"] == whole.provenance["data"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two finished shards, not merged."""
    folder = tmp_path_factory.mktemp("sharded")
    train_shards(CONFIG, folder, 2)
    return folder


@pytest.fixture
def copy(shards, tmp_path):
    return shutil.copytree(shards, tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_merged_shards_are_the_comparison(world, tmp_path):
    config = replace(CONFIG, **WORLDS[world])
    whole = run_comparison(config, tmp_path / "whole")
    train_shards(config, tmp_path / "shards", 3)
    merged = run_comparison(config, tmp_path / "shards")
    assert_same(merged, whole)
    for ours, expected in zip(
        comparison_rows(config, merged.records),
        comparison_rows(config, whole.records),
        strict=True,
    ):
        assert ours == pytest.approx(expected, abs=1e-3, nan_ok=True)
    models = [
        run_folder.load_comparison_checkpoint(one.folder)["engine"]["models"]
        for one in (merged, whole)
    ]
    assert np.allclose(*models, atol=1e-4)


def test_a_merged_folder_is_resumed_and_loaded_like_any_other(copy):
    merged = run_comparison(CONFIG, copy)
    written = (copy / "settings.toml").stat().st_mtime_ns
    again = run_comparison(None, copy, resume=True)
    assert np.array_equal(again.records["clients"], merged.records["clients"])
    assert (copy / "settings.toml").stat().st_mtime_ns == written  # merged once
    assert load_comparison(copy).rounds_done == CONFIG.rounds
    run_shard(CONFIG, copy, Shard(1, 2))  # finished: nothing is trained
    shutil.rmtree(copy / "shards")  # no longer needed
    assert run_comparison(CONFIG, copy).rounds_done == CONFIG.rounds


def test_settings_may_be_left_out_where_the_shards_know_them(copy):
    assert run_comparison(None, copy, resume=True).config == CONFIG


def test_a_merge_that_was_interrupted_is_done_again(copy, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_settings", stop)
        with pytest.raises(KeyboardInterrupt):
            run_comparison(CONFIG, copy)
    assert not run_folder.has_comparison(copy)
    assert run_comparison(CONFIG, copy).rounds_done == CONFIG.rounds


def test_environments_that_differ_are_all_named(copy):
    other = copy / "shards" / "2-of-2"
    environment = run_folder.read_environment(other) | {"machine": "another one"}
    run_folder.write_environment(other, environment)
    machine = run_comparison(CONFIG, copy).environment["machine"]
    own = run_folder.read_environment(copy / "shards" / "1-of-2")["machine"]
    assert machine == f"{own}; another one"


def remove_second(folder):
    shutil.rmtree(folder / "shards" / "2-of-2")


def copy_first_to_second(folder):
    remove_second(folder)
    shutil.copytree(folder / "shards" / "1-of-2", folder / "shards" / "2-of-2")


def add_other_split(folder):
    shutil.copytree(folder / "shards" / "1-of-2", folder / "shards" / "1-of-3")


def unfinish(folder):
    second = folder / "shards" / "2-of-2"
    state = run_folder.load_comparison_checkpoint(second)
    run_folder.save_checkpoint(second, state | {"round": 4})


def change_settings(folder):
    second = folder / "shards" / "2-of-2"
    config = replace(CONFIG, seeds=1, first_seed=7, learning_rate=0.1)
    run_folder.write_settings(second, config.as_dict())


def change_samples(folder):
    run_folder.write_data_digest(folder / "shards" / "2-of-2", "0" * 64)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_second, "must hold all shards to merge them, got none of 2/2"),
        (copy_first_to_second, r"2-of-2 must hold other seeds than .*, got the same shard twice"),
        (add_other_split, "must hold shards of one number, got shards of 2 and of 3"),
        (unfinish, "must hold finished shards to merge them, got shard 2/2 at round 4 of 6"),
        (
            change_settings,
            r"2-of-2 must be shard 2/2 of the same settings, got learning_rate 0\.1, not 0\.05$",
        ),
        (change_samples, "2-of-2 must have the samples of .*1-of-2, .*, got "),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(copy, damage, message):
    damage(copy)
    with pytest.raises(ValueError, match=message):
        run_comparison(CONFIG, copy)
    assert sorted(path.name for path in copy.iterdir()) == ["shards"]  # nothing was written


@pytest.mark.parametrize("name", ["environment.json", "owners.npz", "classes.npz"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_shard_that_has_lost_a_file_is_not_merged(copy, name, number):
    (copy / "shards" / f"{number}-of-2" / name).unlink()
    message = (
        rf"{number}-of-2/{name} must be there to merge shard {number}/2, got no such file; "
        rf"move .*{number}-of-2 away and train shard {number}/2 again with --shard {number}/2"
    )
    with pytest.raises(ValueError, match=message):
        run_comparison(CONFIG, copy)
    assert sorted(path.name for path in copy.iterdir()) == ["shards"]


def test_shards_of_other_settings_than_asked_for_are_not_merged(copy):
    with pytest.raises(ValueError, match="must be shard 1/2 of the same settings, got rounds 6"):
        run_comparison(replace(CONFIG, rounds=7), copy)


def test_other_seeds_are_counted_in_the_whole_comparison_not_in_a_shard(copy):
    config = replace(CONFIG, seeds=4)  # The shards would have 2 and 2 seeds, not 2 and 1.
    with pytest.raises(ValueError, match=r"2-of-2 must be shard 2/2 .*, got seeds 3, not 4$"):
        run_comparison(config, copy)
    message = "settings must be those of the shards in .*, got seeds 4, not 3; choose another"
    with pytest.raises(ValueError, match=message):
        run_sharded(config, copy, ShardWorkers.on_devices(["cpu", "cpu"]), resume=True)
    with pytest.raises(ValueError, match=message):
        run_shard(config, copy, Shard(1, 2))
    shutil.rmtree(copy / "shards" / "1-of-2")  # Who knows how many seeds it had?
    message = "got seeds 2, not 1 in shard 2/2; choose another"
    with pytest.raises(ValueError, match=message):
        run_shard(config, copy, Shard(1, 2))


def test_merging_is_refused_while_a_shard_is_in_use(copy):
    path = copy / "shards" / "1-of-2"
    with (
        run_folder.locked(path),
        pytest.raises(ValueError, match="shard must not be in use by another process"),
    ):
        run_comparison(CONFIG, copy)


def test_merging_is_refused_while_another_process_merges(copy):
    with (
        run_folder.locked(copy),
        pytest.raises(ValueError, match="out must not be in use by another process"),
    ):
        run_comparison(CONFIG, copy)


def test_a_shard_of_other_settings_is_refused_before_it_is_trained(copy):
    remove_second(copy)
    message = "settings must be those of the shards in .*, got rounds 7, not 6"
    with pytest.raises(ValueError, match=message):
        run_shard(replace(CONFIG, rounds=7), copy, Shard(2, 2))
    with pytest.raises(ValueError, match=r"shards must be 2 in number, .*, got 3"):
        run_shard(CONFIG, copy, Shard(2, 3))
    with pytest.raises(ValueError, match="settings must be given to go on"):
        run_shard(None, copy, Shard(2, 2))


def test_shards_do_not_mix_with_a_run_that_has_none_or_with_other_files(tmp_path):
    run_folder.write_settings(tmp_path / "run", CONFIG.as_dict())
    with pytest.raises(ValueError, match="out must not hold a run that has no shards"):
        run_shard(CONFIG, tmp_path / "run", Shard(1, 2))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out must be a new or empty folder"):
        run_shard(CONFIG, tmp_path, Shard(1, 2))


def test_devices_do_not_go_on_without_being_told(copy):
    remove_second(copy)
    with pytest.raises(ValueError, match=r"out must not hold an unfinished run, .* add --resume"):
        run_sharded(CONFIG, copy, ShardWorkers.on_devices(["cpu"]))


@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}])
@pytest.mark.parametrize(
    ("workers", "flag", "value"),
    [
        (ShardWorkers(("cuda:0", "cuda:1"), None, "cuda"), "devices", "cuda:0,cuda:1"),
        (ShardWorkers.on_ray("auto", "cuda"), "ray", "auto"),
    ],
)
def test_a_run_does_not_go_on_with_workers_of_another_kind(copy, workers, flag, value, options):
    message = f"^{flag} must be of the kind cpu, as .*copy were, got {value} of the kind cuda$"
    with pytest.raises(ValueError, match=message):
        run_sharded(None, copy, workers, **options)
    assert sorted(path.name for path in copy.iterdir()) == ["shards"]


def test_a_new_run_without_settings_is_trained_on_the_workers_that_are_given(tmp_path, monkeypatch):
    configs = []

    def keep_config(config, *args):
        configs.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(sharding, "_train_all", keep_config)
    with pytest.raises(KeyboardInterrupt):
        run_sharded(None, tmp_path, ShardWorkers(("cuda:0",), None, "cuda"), resume=True)
    assert configs == [ComparisonConfig(device="cuda")]


def test_to_overwrite_discards_the_shards_too(copy):
    config = replace(CONFIG, seeds=1, selectors=("random",), aggregations=("paper",), rounds=2)
    run_comparison(config, copy, overwrite=True)
    assert not (copy / "shards").exists()


@pytest.mark.parametrize("workers", [None, ShardWorkers(("cpu", "cpu"), None, "cpu")])
def test_a_shard_that_another_process_trains_is_not_discarded(copy, workers):
    train = partial(run_sharded, workers=workers) if workers else run_comparison
    config = replace(CONFIG, rounds=2)
    run_comparison(CONFIG, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with (
        run_folder.locked(copy / "shards" / "2-of-2"),
        pytest.raises(ValueError, match=r"shard must not be in use .*, got .*2-of-2"),
    ):
        train(config, copy, overwrite=True)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_discarded_shards_take_their_damaged_checkpoints_with_them(copy):
    checkpoint = copy / "shards" / "2-of-2" / run_folder.CHECKPOINT
    checkpoint.write_bytes(b"damaged")
    run_shard(CONFIG, copy, Shard(2, 2), resume=True, from_previous=True)
    assert list(checkpoint.parent.glob("checkpoint.damaged-*"))
    run_folder.discard_shards(copy)
    assert not (copy / "shards").exists()


@pytest.mark.slow
def test_a_killed_process_ends_all_and_the_same_command_goes_on(tmp_path):
    config = replace(CONFIG, checkpoint_every=1, rounds=12)
    whole = run_comparison(config, tmp_path / "whole")
    folder = tmp_path / "two"
    told = []

    def kill(words, done, total):
        told.append(words)
        if done == 4:
            os.kill(children(os.getpid())[0], signal.SIGKILL)

    with pytest.raises(ShardFailed, match="was ended by SIGKILL"):
        run_sharded(config, folder, ShardWorkers.on_devices(["cpu", "cpu"]), on_progress=kill)
    assert children(os.getpid()) == []
    rounds = []
    for path in run_folder.find_shards(folder).values():
        state = run_folder.load_comparison_checkpoint(path)
        rounds.append(state["round"] if state else 0)
    assert max(rounds) >= 3
    assert min(rounds) < config.rounds

    before = len(told)
    merged = run_sharded(
        config,
        folder,
        ShardWorkers.on_devices(["cpu"]),  # one device goes on with the shards of two
        resume=True,
        on_progress=lambda words, done, total: told.append(words),
    )
    assert_same(merged, whole)
    assert len(told) - before == 2 * config.rounds - sum(rounds)  # no round was played twice
    names = {words.split(",")[0] for words in told}
    assert names == {"shard 1/2 on cpu", "shard 2/2 on cpu"}
    # A finished run is only shown, whoever asks.
    again = run_sharded(config, folder, ShardWorkers.on_devices(["cpu"]))
    assert np.array_equal(again.records["loss"], merged.records["loss"])
