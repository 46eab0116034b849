"""Train what an artefact still lacks, part by part, within a time limit."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter

import torch

from fedcohort.data import Dataset, load
from fedcohort.files import atomic_write
from fedcohort.lab import folder as rundir
from fedcohort.lab.archive import COST, gather_results, identity
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.parts import part_folder, remaining_parts, unfinished_parts
from fedcohort.lab.simulation import Progress
from fedcohort.lab.trial import Trial


@dataclass
class Training:
    """Where results are kept, where data lie, and until when; what could not be had is remembered."""

    out: Path
    data: Path | None = None
    until: float = float("inf")
    told: Progress | None = None
    absent: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    loaded: dict[str, Dataset] = field(default_factory=dict)

    def over(self) -> bool:
        """Return whether the time is up."""
        return monotonic() >= self.until

    def dataset(self, name: str) -> Dataset | None:
        """Return a data set, read once; None if it cannot be had, and why is remembered."""
        if name not in self.loaded and name not in self.absent:
            try:
                self.loaded[name] = load(name, self.data, on_progress=self._downloaded)
            except ValueError as error:
                self.absent[name] = str(error)
        return self.loaded.get(name)

    def complete(self, wanted: Collection[ComparisonConfig]) -> None:
        """Train every run that is wanted and not finished; stop between rounds when the time is up."""
        for of in wanted:
            self._check_file(of.dataset)
            for folder, part in unfinished_parts(
                of, self.out / "runs"
            ):  # first what an earlier call left unfinished
                if remaining_parts(part, self._finished()):
                    self._train(folder, part)
            for part in remaining_parts(of, self._finished()):
                self._train(part_folder(part, self.out / "runs"), part)

    def _check_file(self, name: str) -> None:
        """Refuse a file of samples that has changed since runs in this folder were trained on it."""
        if not name.endswith(".npz") or (dataset := self.dataset(name)) is None:
            return
        for path in sorted((self.out / "runs").glob("*/settings.toml")):
            if rundir.read_settings(path).get("dataset") == name:
                rundir.check_data(path.parent, dataset.digest)

    def _finished(self) -> set[str]:
        return {identity(result.config) for result in gather_results(self.out) if result.finished}

    def _train(self, folder: Path, of: ComparisonConfig) -> None:
        if not self.stopped and self.over():
            state = rundir.load_checkpoint(folder, ("round",))
            self.stopped = (
                f"{folder.name} at round {state['round']} of {of.rounds}"
                if state
                else f"{folder.name} was not begun"
            )
        if self.stopped or (dataset := self.dataset(of.dataset)) is None:
            return
        trial = Trial(of, dataset, folder)
        with rundir.locked(folder):
            trial.restore()
            rundir.load_records(folder, trial.done)  # a gap there could never be filled
            rundir.write_settings(folder, of.as_dict())
            first, start, told = trial.done, perf_counter(), self.told
            name = f"{folder.name}, {len(trial.places)} runs"
            try:
                trial.run(
                    (lambda done, accuracy: told(name, done, of.rounds)) if told else None,
                    self.over,
                )
            finally:
                _add_cost(folder, perf_counter() - start, trial.done - first, trial)
        if trial.done < of.rounds:
            self.stopped = f"{folder.name} at round {trial.done} of {of.rounds}"

    def _downloaded(self, done: int, total: int | None) -> None:
        if self.told:
            self.told("download", done, total or done)


def _add_cost(folder: Path, seconds: float, rounds: int, trial: Trial) -> None:
    """Add what a call took to what earlier ones took; a call that was killed is not in it."""
    path = folder / COST
    before = json.loads(path.read_text()) if path.exists() else {}
    gpu = (
        torch.cuda.get_device_name(trial.engine.device)
        if trial.engine.device.type == "cuda"
        else None
    )
    cost = {"part": folder.name, "gpu": gpu, "runs": len(trial.places)}
    spent = {"seconds": seconds, "timed_rounds": rounds, "client_steps": trial.engine.client_steps}
    cost |= {name: before.get(name, 0) + value for name, value in spent.items()}
    with atomic_write(path) as draft:
        draft.write_text(json.dumps(cost, indent=2) + "\n")
