"""Checkpoints of a comparison: damaged files, and whole files with a strange state."""

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from folder_readers import plain
from fuzz_cases import Play, SilentAcceptance, Surface, require_name
from mutations import change_array, change_bytes, change_value

from fedcohort.data import load
from fedcohort.files import load_state, save_state
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.trial import Trial

CHECKPOINT = "checkpoint.safetensors"
CONFIG = ComparisonConfig(
    selectors=("random", "e3cs-0.5", "fedcs"),
    partitions=("iid",),
    aggregations=("paper",),
    seeds=1,
    clients=5,
    cohort=2,
    rounds=4,
    epochs=(1,),
    mode="together",
    slots=2,
    server_momentum=0.5,
)


def prepare(scratch: Path) -> Play:
    dataset = load("digits")
    source = scratch / "source"
    folder = scratch / "changed"

    def trial(home: Path) -> Trial:
        return Trial(CONFIG, dataset, home)

    begun = trial(source)
    run_folder.write_settings(source, CONFIG.as_dict())
    rounds = iter(range(2))
    begun.run(should_stop=lambda: next(rounds) == 1)
    whole = (source / CHECKPOINT).read_bytes()
    state = load_state(source / CHECKPOINT)
    expected = restored(trial(source))

    def play_damaged(rng: random.Random) -> None:
        path = folder / CHECKPOINT
        path.write_bytes(change_bytes(rng, whole))
        try:
            found = restored(trial(folder))
        except ValueError as error:
            require_name(error, path, folder)
            raise
        if found != expected:
            raise SilentAcceptance(f"{path} was changed and accepted")

    def play_foreign(rng: random.Random) -> None:
        path = folder / CHECKPOINT
        save_state(path, change_state(rng, state))
        going_on = trial(folder)
        try:
            going_on.restore()
        except ValueError as error:
            require_name(error, path, folder, *state, *state["selectors"], "state", "clients")
            raise
        play_on(going_on)

    def play(rng: random.Random) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        rng.choice((play_damaged, play_foreign))(rng)

    return play


def restored(trial: Trial) -> Any:
    """Return what a trial goes on with."""
    trial.restore()
    tensors = {name: value.numpy() for name, value in trial.engine.state_dict().items()}
    return plain([trial.done, trial.engine.mode, tensors, trial.selector.state_dict()])


def play_on(trial: Trial) -> None:
    """Play the rounds that are left: what was accepted must also work."""
    left = trial.config.rounds - trial.done
    if not 0 <= left <= trial.config.rounds:
        raise SilentAcceptance(f"{trial.done} of {trial.config.rounds} rounds are done")
    trial.run()


def change_state(rng: random.Random, state: Any) -> Any:
    """Return a nested state with one part changed; arrays keep to arrays mostly."""
    if isinstance(state, np.ndarray):
        changed = change_array(rng, state)
        return 0 if changed.dtype.kind in "cUS" else changed  # safetensors has no such types
    if isinstance(state, dict) and state and rng.random() < 0.9:
        changed = dict(state)
        key = rng.choice(list(changed))
        how = rng.random()
        if how < 0.85:
            changed[key] = change_state(rng, changed[key])
        elif how < 0.93:
            del changed[key]
        else:
            changed[f"{key}x"] = changed.pop(key)
        return changed
    if isinstance(state, dict):
        return {}
    return change_value(rng, state)


SURFACES = (Surface("checkpoints", prepare, 14),)
