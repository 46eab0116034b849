"""What a server must remember to go on after a crash: one file per round, whole or not at all, nothing in it can run code."""

from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy

from fedcohort import rundir
from fedcohort.flower.aggregation import as_record
from fedcohort.flower.validity import Model, as_model

PARTS = ("round", "model", "selector", "registry", "strategy", "totals")


def save(folder: Path, state: dict[str, Any]) -> None:
    """Write the state after a round in place of the one before."""
    rundir.save_checkpoint(folder, state)


def load(folder: Path, resume: bool, initial: Model) -> dict[str, Any] | None:
    """Return the state to go on from, None to begin; a state that would be lost, or of another model, is refused."""
    state = rundir.load_checkpoint(folder, PARTS)
    if state is None:
        return None
    if not resume:
        raise ValueError(f"folder must not hold a run unless resume is true, got {folder} after round {state['round']}")
    mine, theirs = _shapes(initial), _shapes(state["model"])
    if mine != theirs:
        first = next(name for name in [*mine, *theirs] if mine.get(name) != theirs.get(name))
        raise ValueError(
            f"{folder} must hold a checkpoint of this model, got another: "
            f"{first!r} is {mine.get(first, 'absent')} here and {theirs.get(first, 'absent')} there"
        )
    return state


def _shapes(model: Model) -> dict[str, str]:
    return {name: f"{array.dtype}{list(array.shape)}" for name, array in model.items()}


def layers(strategy: Strategy) -> list[Strategy]:
    """Return a strategy and those it wraps itself, as the differentially private ones do."""
    inner = getattr(strategy, "strategy", None)
    return [strategy, *(layers(inner) if isinstance(inner, Strategy) else [])]


def strategy_state(strategy: Strategy) -> dict[str, Any]:
    """Return the arrays that a strategy keeps between rounds, such as FedAdam's moments."""
    return {
        str(depth): {name: _plain(value) for name, value in vars(layer).items() if _is_state(value)}
        for depth, layer in enumerate(layers(strategy))
    }


def restore_strategy(strategy: Strategy, state: dict[str, Any]) -> None:
    """Give a strategy back what it kept."""
    for depth, layer in enumerate(layers(strategy)):
        for name, value in state.get(str(depth), {}).items():
            setattr(layer, name, _unplain(value))


def _is_state(value: Any) -> bool:
    if isinstance(value, ArrayRecord | np.ndarray):
        return True
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return bool(parts) and all(isinstance(part, np.ndarray) for part in parts)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, ArrayRecord):
        return {"record": as_model(value)}
    if isinstance(value, np.ndarray):
        return {"single": value}
    return {"dict": value} if isinstance(value, dict) else {"list": {str(place): part for place, part in enumerate(value)}}


def _unplain(value: dict[str, Any]) -> Any:
    kind, held = next(iter(value.items()))
    if kind == "record":
        return as_record(held)
    return list(held.values()) if kind == "list" else held
