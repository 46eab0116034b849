"""How far a run is, seen from outside: only its files are read, as they come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import load_chunk, read_config
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.folder import Kind, check_readable, detect_kind
from fedcohort.lab.named_parts import data_and_model, selector_labels
from fedcohort.lab.runs import run_keys
from fedcohort.lab.summary import success_share
from fedcohort.selection.protocol import NOBODY

RECENT = 10  # rounds of a Flower run that the time left is estimated from


@dataclass(frozen=True)
class AskedClient:
    """A client that was asked in the last round.

    Attributes:
        name: The client.
        status: "arrived", or the word for what happened instead.
    """

    name: str
    status: str


@dataclass(frozen=True)
class SelectorProgress:
    """One selector so far.

    Attributes:
        name: The selector.
        success: Share of updates that were used.
        accuracy: Latest accuracy, nan if there is none.
        asked: The clients that were asked last.
    """

    name: str
    success: float
    accuracy: float
    asked: tuple[AskedClient, ...]


@dataclass(frozen=True)
class Snapshot:
    """How far a run is.

    Attributes:
        title: What is run, in a few words.
        done: Rounds that are played.
        rounds: Rounds in all, None if the run did not say.
        seconds_left: Time still to go, None if it is not known.
        written: When the last round was written, in seconds since the epoch.
        selectors: Each selector so far.
    """

    title: str
    done: int
    rounds: int | None
    seconds_left: float | None
    written: float | None
    selectors: tuple[SelectorProgress, ...]

    @property
    def finished(self) -> bool:
        """Whether all rounds are played."""
        return self.rounds is not None and self.done >= self.rounds


def follow(folder: Path) -> "ComparisonFollower | FlowerFollower":
    """Return an object whose `snapshot` says how far the run in a folder is.

    Raises:
        ValueError: If the folder holds no comparison and no Flower run.
    """
    if not folder.is_dir():
        raise ValueError(f"run must be a folder of a run, got {folder}")
    check_readable("run", folder)
    kind = detect_kind(folder)
    if kind is Kind.COMPARISON:
        return ComparisonFollower(folder, read_config(folder))
    if kind is Kind.FLOWER:
        return FlowerFollower(folder)
    raise ValueError(
        "run must be a folder of `compare`, a part of `reproduce`, or of a Flower run, "
        f"got {folder}"
    )


@dataclass
class ComparisonFollower:
    """Follows a comparison; each chunk of its records is read once.

    Attributes:
        folder: The run folder.
        config: The comparison's settings.
        done: Rounds read so far.
        asked: Updates asked for so far, per run.
        used: Updates used so far, per run.
        latest: The chunk that was read last.
        times: After how many rounds which chunk was written; first the start of the run.
    """

    folder: Path
    config: ComparisonConfig
    done: int = 0
    asked: Any = 0
    used: Any = 0
    latest: Mapping[str, Any] = field(default_factory=dict)
    times: list[tuple[int, float]] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        """Return how far the run is now."""
        if not self.times:
            started = run_folder.settings_path(self.folder).stat().st_mtime
            self.times = [(0, started)]
        path = run_folder.chunk_path(self.folder, self.done)
        while path.exists():
            self._add_chunk(load_chunk(path, self.config), path.stat().st_mtime)
            path = run_folder.chunk_path(self.folder, self.done)

        config = self.config
        title = f"{data_and_model(config)}, {len(run_keys(config))} runs"
        if not self.done:
            return Snapshot(title, 0, config.rounds, None, None, ())
        selectors = tuple(self._selector_progress(name) for name in config.selectors)
        written = self.times[-1][1]
        return Snapshot(title, self.done, config.rounds, self._seconds_left(), written, selectors)

    def _add_chunk(self, chunk: Mapping[str, Any], written: float) -> None:
        clients = chunk["clients"]
        self.used = self.used + chunk["valid"].sum(axis=(0, 2))
        self.asked = self.asked + (clients != NOBODY).sum(axis=(0, 2))
        self.done += len(clients)
        self.latest = chunk
        self.times.append((self.done, written))

    def _seconds_left(self) -> float | None:
        """Return the time to go at the pace of the last chunk; a resumed run paused before it."""
        (rounds_before, start), (rounds_now, end) = self.times[-2:]
        if end <= start:
            return None
        seconds_per_round = (end - start) / (rounds_now - rounds_before)
        return (self.config.rounds - rounds_now) * seconds_per_round

    def _selector_progress(self, name: str) -> SelectorProgress:
        rows = [row for row, key in enumerate(run_keys(self.config)) if key.selector == name]
        success = success_share(self.used[rows].mean(), self.asked[rows].mean())
        accuracy = self.latest["accuracy"][:, rows]
        tested = accuracy[~np.isnan(accuracy).any(axis=1)]
        latest_accuracy = float(tested[-1].mean()) if len(tested) else nan
        label = selector_labels(self.config)[name]
        return SelectorProgress(label, success, latest_accuracy, self._asked_last(rows[0]))

    def _asked_last(self, row: int) -> tuple[AskedClient, ...]:
        """Return the clients that a run asked in its last round."""
        columns = [self.latest[name][-1, row] for name in ("clients", "arrived", "valid")]
        asked = []
        for client, arrived, valid in zip(*columns, strict=True):
            if client == NOBODY:
                continue
            status = "missing"
            if valid:
                status = "arrived"
            elif arrived:
                status = "rejected"
            asked.append(AskedClient(str(client), status))
        return tuple(asked)


@dataclass
class FlowerFollower:
    """Follows a Flower run through its journal."""

    folder: Path

    def snapshot(self) -> Snapshot:
        """Return how far the run is now."""
        about = run_folder.read_about(self.folder)
        selector = about.get("selector")
        cohort = about.get("cohort_size", "?")
        clients = about.get("clients", "?")
        title = f"Flower, {selector or 'a selector'}, {cohort} of {clients} clients"
        rounds = about.get("rounds")
        if not isinstance(rounds, int):
            rounds = None

        path = run_folder.journal_path(self.folder)
        rows = run_folder.load_journal(self.folder)
        if not rows:
            return Snapshot(title, 0, rounds, None, None, ())
        last = rows[-1]
        done = int(last["round"])
        seconds_left = None
        if rounds:
            seconds_per_round = float(np.mean([row["seconds"] for row in rows[-RECENT:]]))
            seconds_left = (rounds - done) * seconds_per_round
        asked = tuple(AskedClient(client["client"], client["status"]) for client in last["asked"])
        name = str(selector or "this run")
        progress = SelectorProgress(name, float(last["success_ratio"]), nan, asked)
        return Snapshot(title, done, rounds, seconds_left, path.stat().st_mtime, (progress,))
