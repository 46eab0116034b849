"""A run under way, seen from outside: only its files are read, as they come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig, run_keys
from fedcohort.lab.records import read_chunk, read_config


@dataclass(frozen=True)
class Asked:
    """A client that was asked in the last round, and what came of it: "arrived", or the word for what did not."""

    client: str
    came: str


@dataclass(frozen=True)
class Line:
    """One scheme so far: share of updates used, latest accuracy (nan if there is none), who was asked last."""

    name: str
    success: float
    accuracy: float
    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class Snapshot:
    """How far a run is. rounds: in all, None if the run did not say; left: seconds still to go, None if that is not known."""

    title: str
    done: int
    rounds: int | None
    left: float | None
    written: float | None
    lines: tuple[Line, ...]

    @property
    def finished(self) -> bool:
        """Whether all rounds are played."""
        return self.rounds is not None and self.done >= self.rounds


def follow(folder: Path) -> "Following | FollowingFlower":
    """Return what can look at a run again and again; a folder of anything else is refused."""
    if not folder.is_dir():
        raise ValueError(f"run must be a folder of a run, got {folder}")
    if (folder / "settings.toml").exists():
        return Following(folder, read_config(folder))
    if (folder / "rounds.jsonl").exists() or (folder / "run.json").exists():
        return FollowingFlower(folder)
    raise ValueError(
        f"run must be a folder of `compare`, a part of `reproduce`, or of a Flower run, got {folder}"
    )


@dataclass
class Following:
    """Reads each chunk of a comparison's records once."""

    folder: Path
    of: ComparisonConfig
    done: int = 0
    asked: int = 0
    used: Any = 0
    last: Mapping[str, Any] = field(default_factory=dict)
    times: list[tuple[int, float]] = field(default_factory=list)

    def look(self) -> Snapshot:
        """Return how far the run is now."""
        if not self.times:
            self.times = [(0, (self.folder / "settings.toml").stat().st_mtime)]
        while (path := self.folder / "records" / f"{self.done:07d}.npz").exists():
            self._add(read_chunk(path, self.of), path.stat().st_mtime)
        of = self.of
        title = f"{of.dataset}, {of.model}, {len(run_keys(of))} runs"
        left = self._left() if self.done else None
        lines = tuple(self._line(name) for name in of.selectors) if self.done else ()
        return Snapshot(
            title, self.done, of.rounds, left, self.times[-1][1] if self.done else None, lines
        )

    def _add(self, chunk: Mapping[str, Any], written: float) -> None:
        rounds, _, size = chunk["clients"].shape
        self.used = self.used + chunk["valid"].sum(axis=(0, 2))
        self.asked += rounds * size
        self.done += rounds
        self.last = chunk
        self.times.append((self.done, written))

    def _left(self) -> float | None:
        """Return the seconds to go at the pace of the last chunk: a run that was resumed paused before that."""
        (before, start), (now, end) = self.times[-2:]
        return (self.of.rounds - now) * (end - start) / (now - before) if end > start else None

    def _line(self, name: str) -> Line:
        rows = [row for row, place in enumerate(run_keys(self.of)) if place.selector == name]
        accuracy = self.last["accuracy"][:, rows]
        tested = accuracy[~np.isnan(accuracy).any(axis=1)]
        clients, arrived, valid = (
            self.last[part][-1, rows[0]] for part in ("clients", "arrived", "valid")
        )
        came = [
            "arrived" if good else "rejected" if here else "missing"
            for here, good in zip(arrived, valid, strict=True)
        ]
        return Line(
            name,
            float(self.used[rows].mean() / self.asked),
            float(tested[-1].mean()) if len(tested) else float("nan"),
            tuple(Asked(str(client), word) for client, word in zip(clients, came, strict=True)),
        )


@dataclass
class FollowingFlower:
    """Reads the journal of a Flower run."""

    folder: Path

    def look(self) -> Snapshot:
        """Return how far the run is now."""
        path, about = self.folder / "rounds.jsonl", rundir.read_about(self.folder)
        rows = rundir.load_journal(self.folder) if path.exists() else []
        rounds = about.get("rounds") if isinstance(about.get("rounds"), int) else None
        size = f"{about.get('cohort_size', '?')} of {about.get('clients', '?')} clients"
        title = f"Flower, {about.get('selector', 'a selector')}, {size}"
        if not rows:
            return Snapshot(title, 0, rounds, None, None, ())
        done = int(rows[-1]["round"])
        recent = float(np.mean([row["seconds"] for row in rows[-10:]]))
        asked = tuple(Asked(one["client"], one["status"]) for one in rows[-1]["asked"])
        line = Line(
            str(about.get("selector", "this run")),
            float(rows[-1]["success_ratio"]),
            float("nan"),
            asked,
        )
        return Snapshot(
            title,
            done,
            rounds,
            (rounds - done) * recent if rounds else None,
            path.stat().st_mtime,
            (line,),
        )
