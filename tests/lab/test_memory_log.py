"""Remembered updates on disk: only changed rows, and exactly the same after a crash."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedcohort.data import Dataset
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.memory_log import MemoryLog
from fedcohort.lab.trial import Trial
from fedcohort.learning.update_memory import UpdateMemory

DATA = Dataset(
    "tiny",
    x=np.random.default_rng(0).normal(size=(160, 3)).astype(np.float32),
    y=np.arange(160) % 4,
    num_classes=4,
)
CONFIG = ComparisonConfig(
    selectors=("age",),
    partitions=("iid",),
    aggregations=("fedvarp", "paper", "mifa", "fedau"),
    seeds=2,
    clients=8,
    cohort=3,
    rounds=12,
    mode="one-by-one",
    checkpoint_every=3,
)


def play_until(trial, rounds):
    """Play until so many rounds are done; a checkpoint is written then."""
    played = []
    trial.run(
        on_round=lambda done, accuracy: played.append(done),
        should_stop=lambda: played[-1] >= rounds,
    )


def store(memory, places, value):
    """Remember an update of one value for each run row and client."""
    rows, clients = np.array(places).T
    run = torch.tensor([memory.runs[row] for row in rows])
    change = torch.full((len(places), memory.values.shape[2]), float(value))
    valid = torch.ones(len(places), dtype=torch.bool)
    memory.store(change, valid, run, torch.from_numpy(clients))


@pytest.mark.parametrize("stop", [2, 5, 7])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_run_that_goes_on_from_any_checkpoint_ends_the_same(tmp_path, stop, precision):
    config = replace(CONFIG, memory_precision=precision)
    whole = Trial(config, DATA, tmp_path / "whole")
    whole.run()
    play_until(Trial(config, DATA, tmp_path / "run"), stop)
    resumed = Trial(config, DATA, tmp_path / "run")
    resumed.restore()
    assert resumed.done == stop
    resumed.run()
    assert torch.equal(resumed.engine.models, whole.engine.models)
    assert torch.equal(resumed.engine.memory.values, whole.engine.memory.values)


def test_the_previous_checkpoint_has_its_memory_too(tmp_path):
    whole = Trial(CONFIG, DATA, tmp_path / "whole")
    whole.run()
    folder = tmp_path / "run"
    play_until(Trial(CONFIG, DATA, folder), 8)
    (folder / run_folder.CHECKPOINT).write_bytes(b"damaged")
    run_folder.recover_checkpoint(folder)
    resumed = Trial(CONFIG, DATA, folder)
    resumed.restore()
    assert resumed.done == 6
    resumed.run()
    assert torch.equal(resumed.engine.models, whole.engine.models)


def test_a_checkpoint_writes_only_the_rows_that_changed(tmp_path):
    memory = UpdateMemory([1], 2, num_clients=10, num_weights=3)
    log = MemoryLog(tmp_path, memory)
    store(memory, [(0, 2), (0, 7)], 1.0)
    assert log.save(4) == {"rounds": [4]}
    store(memory, [(0, 7)], 2.0)
    assert log.save(8) == {"rounds": [4, 8]}
    assert log.save(12) == {"rounds": [4, 8]}  # nothing changed
    places, updates = run_folder.load_memory(tmp_path, 8)
    assert places.tolist() == [[0, 7]]
    assert updates.tolist() == [[2.0, 2.0, 2.0]]

    restored = UpdateMemory([1], 2, num_clients=10, num_weights=3)
    MemoryLog(tmp_path, restored).restore({"rounds": [4, 8]})
    assert torch.equal(restored.values, memory.values)


def test_a_long_log_is_written_anew_and_old_files_go_once_nobody_needs_them(tmp_path):
    memory = UpdateMemory([0], 1, num_clients=2, num_weights=1)
    log = MemoryLog(tmp_path, memory)
    stored = {}
    for round in range(1, 6):
        store(memory, [(0, 0)], round)
        stored = log.save(round)
        log.clean()
    # Five rows are more than twice the two clients: round 5 holds everything.
    assert stored == {"rounds": [5]}
    assert {path.name for path in (tmp_path / "memory").iterdir()} == {
        f"000000{round}.safetensors" for round in (1, 2, 3, 4, 5)
    }
    store(memory, [(0, 1)], 9)
    stored = log.save(6)
    log.clean()
    assert stored == {"rounds": [5, 6]}
    assert len(list((tmp_path / "memory").iterdir())) == 2
    restored = UpdateMemory([0], 1, num_clients=2, num_weights=1)
    MemoryLog(tmp_path, restored).restore(stored)
    assert torch.equal(restored.values, memory.values)


def test_a_missing_or_damaged_file_is_named(tmp_path):
    play_until(Trial(CONFIG, DATA, tmp_path / "run"), 5)
    path = sorted((tmp_path / "run" / "memory").iterdir())[-1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path.name} must be a checkpoint of fedcohort, got"):
        Trial(CONFIG, DATA, tmp_path / "run").restore()
    path.unlink()
    with pytest.raises(ValueError, match=f"{path.name} must be .* no such file"):
        Trial(CONFIG, DATA, tmp_path / "run").restore()


def test_memory_that_cannot_fit_is_refused_with_its_bytes():
    clients = 10**9
    message = r"that are available, got 1 runs of 1000000000 clients with 10,000,000 weights"
    with pytest.raises(ValueError, match=message + r".* 40,000,000,000,000,000 bytes"):
        UpdateMemory([0], 1, clients, num_weights=10**7)


def test_updates_of_another_shape_are_refused_and_change_nothing():
    memory = UpdateMemory([0], 1, num_clients=2, num_weights=1)
    for places, updates in (
        (np.array([[0, 2]]), np.ones((1, 1), np.float32)),
        (np.array([[0, 1]]), np.ones((1, 2), np.float32)),
        (np.array([[0, 1]]), np.ones((1, 1), np.int16)),
    ):
        with pytest.raises(ValueError, match="remembered updates must be of 1 runs, 2 clients"):
            memory.restore(places, updates)
    assert not memory.values.any()
