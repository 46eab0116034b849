"""What happened, round by round: one JSON object per line, and scalars for TensorBoard if wanted."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.files import atomic_write
from fedcohort.flower.outcomes import Fate
from fedcohort.lab import folder as rundir
from fedcohort.metrics import jain

SCALARS = ("success_ratio", "cep", "fairness", "arrived", "seconds")


@dataclass
class Totals:
    """What has come of all rounds so far: how often each client was asked, and how many updates were sent for and arrived."""

    asked: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    arrived: int = 0

    def add(self, clients: Sequence[str], fates: Sequence[Fate]) -> None:
        """Count a round."""
        for name in clients:
            self.asked[name] = self.asked.get(name, 0) + 1
        self.sent += len(clients)
        self.arrived += sum(fate.status == "arrived" for fate in fates)


def row_of(
    server_round: int,
    seconds: float,
    asked: Sequence[tuple[str, float, Fate]],
    known: Sequence[str],
    totals: Totals,
    probabilities: dict[str, float] | None,
) -> dict[str, Any]:
    """Return a round as it is written down; asked: name, probability of being asked, and fate of each client."""
    counts = np.array([totals.asked.get(name, 0) for name in known], dtype=np.int64)
    return {
        "round": server_round,
        "seconds": round(seconds, 3),
        "asked": [
            {"client": name, "inclusion": round(p, 6), **vars(fate)} for name, p, fate in asked
        ],
        "arrived": sum(fate.status == "arrived" for _, _, fate in asked),
        "cep": totals.arrived,
        "success_ratio": totals.arrived / max(1, totals.sent),
        "fairness": float(jain(counts)) if counts.size else 1.0,
        "probabilities": probabilities,
    }


def announce(folder: Path | None, about: dict[str, Any]) -> None:
    """Write down what is about to be played, for those who watch; nothing where nothing is kept."""
    if folder:
        with atomic_write(folder / "run.json") as draft:
            draft.write_text(json.dumps(about, indent=2) + "\n")
        rundir.write_environment(folder)


class Journal:
    """Appends a line per round to `rounds.jsonl` in a folder; rounds that a resumed run plays again are written once."""

    def __init__(self, folder: Path | None, done: int = 0, tensorboard: bool = False) -> None:
        self.path = folder / "rounds.jsonl" if folder else None
        self.scalars = _writer(folder / "tensorboard", done) if folder and tensorboard else None
        if self.path and self.path.exists():
            rows = [line for line in self.path.read_text().splitlines() if _round(line) <= done]
            with atomic_write(self.path) as draft:
                draft.write_text("".join(f"{line}\n" for line in rows))

    def write(self, row: dict[str, Any]) -> None:
        """Add a round; it is on disk when this returns."""
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        if self.scalars:
            for name in SCALARS:
                self.scalars.add_scalar(f"round/{name}", row[name], row["round"])
            for name, value in (row["probabilities"] or {}).items():
                self.scalars.add_scalar(f"probability/{name}", value, row["round"])

    def close(self) -> None:
        """Bring TensorBoard's scalars to disk."""
        if self.scalars:
            self.scalars.close()


def _round(line: str) -> float:
    """Return the round of a line; one that was cut by a crash belongs to no round."""
    try:
        return int(json.loads(line)["round"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _writer(folder: Path, done: int) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError:
        raise ValueError(
            "tensorboard needs tensorboardX: pip install 'fedcohort[tracking]'"
        ) from None
    return SummaryWriter(str(folder), purge_step=done + 1)
