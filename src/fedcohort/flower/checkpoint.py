"""What a server must remember to go on after a crash: one file per round, whole or not at all, nothing in it can run code."""

from pathlib import Path
from typing import Any

from flwr.app import MetricRecord
from flwr.serverapp.strategy import Result

from fedcohort.flower.validity import Model
from fedcohort.lab import folder as rundir

METRICS = ("train_metrics_clientapp", "evaluate_metrics_clientapp", "evaluate_metrics_serverapp")
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
        raise ValueError(
            f"folder must not hold a run unless resume is true, got {folder} after round {state['round']}"
        )
    mine, theirs = _shapes(initial), _shapes(state["model"])
    if mine != theirs:
        first = next(name for name in [*mine, *theirs] if mine.get(name) != theirs.get(name))
        raise ValueError(
            f"{folder} must hold a checkpoint of this model, got another: "
            f"{first!r} is {mine.get(first, 'absent')} here and {theirs.get(first, 'absent')} there"
        )
    return state


def refuse_other(folder: Path | None, state: dict[str, Any], mine: dict[str, str]) -> None:
    """Refuse to go on with another selector or rule than those of the rounds before."""
    for name, was in state.get("about", {}).items():
        if was != mine[name]:
            raise ValueError(
                f"{name} must be as in the rounds before, {was!r}, to resume {folder}, got {mine[name]!r}"
            )


def metrics_of(result: Result) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the metrics of all rounds so far, plain."""
    return {
        kind: {str(round): dict(record) for round, record in getattr(result, kind).items()}
        for kind in METRICS
    }


def result_of(state: dict[str, Any]) -> Result:
    """Return the metrics of the rounds before as Flower gives them."""
    result = Result()
    for kind, rounds in state.get("metrics", {}).items():
        getattr(result, kind).update(
            {int(round): MetricRecord(record) for round, record in rounds.items()}
        )
    return result


def _shapes(model: Model) -> dict[str, str]:
    return {name: f"{array.dtype}{list(array.shape)}" for name, array in model.items()}
