"""The state of a comparison under way, as its checkpoint holds it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedcohort.checks import check_choice, check_int, shown
from fedcohort.learning import Engine
from fedcohort.selection.lockstep import Lockstep

TRAINING_MODES = ("together", "one-by-one")


def trial_state(engine: Engine, selector: Lockstep, done: int) -> dict[str, Any]:
    """Return everything that decides the rounds after the first `done`."""
    arrays = {}
    for name, value in engine.state_dict().items():
        arrays[name] = value.cpu().numpy() if isinstance(value, torch.Tensor) else value
    return {
        "round": done,
        "mode": engine.mode,
        "slots": engine.slots,
        "engine": arrays,
        "selectors": selector.state_dict(),
    }


def restore_trial(
    engine: Engine, selector: Lockstep, state: dict[str, Any], rounds: int, path: Path
) -> int:
    """Give the engine and the selectors the state of a checkpoint.

    Args:
        engine: The engine.
        selector: The selectors of all runs.
        state: What `trial_state` returned.
        rounds: How many rounds the comparison has.
        path: The checkpoint, for the message.

    Returns:
        How many rounds are done.

    Raises:
        ValueError: If the state is of another comparison.
    """
    try:
        done = check_int("round", state["round"], 0, rounds)
        mode = check_choice("mode", state["mode"], TRAINING_MODES)
        slots = state.get("slots")
        if slots is not None:
            slots = check_int("slots", slots, 1)
        tensors = _read_tensors(_check_table("engine", state["engine"]))
        selector.load_state_dict(_check_table("selectors", state["selectors"]))
        engine.load_state_dict(tensors)
    except ValueError as error:
        raise ValueError(f"{path} must be a checkpoint of this run, got: {error}") from None

    engine.mode = mode
    engine.slots = engine.slots or slots
    return done


def _read_rules(rules: Any) -> dict[str, Any]:
    """Return what each rule has learnt, by its name."""
    learnt = {}
    for name, state in _check_table("rules", rules).items():
        learnt[name] = _check_table(name, state)
    return learnt


def _read_tensors(arrays: dict[str, Any]) -> dict[str, Any]:
    tensors: dict[str, Any] = {}
    for name, values in arrays.items():
        if name == "rules":
            tensors[name] = _read_rules(values)
            continue
        if not isinstance(values, np.ndarray) or values.dtype != np.float32:
            raise ValueError(f"{name} must be an array of float32, got {shown(values)}")
        tensors[name] = torch.from_numpy(values)
    return tensors


def _check_table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a table, got {value!r}")
    return value
