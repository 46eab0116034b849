"""Train what a reproduction still lacks, part by part, within a time limit."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter

import torch

from fedcohort.arrays import Floats
from fedcohort.data import Dataset, load
from fedcohort.lab import folder as run_folder
from fedcohort.lab.archive import add_result, gather_results, results_of
from fedcohort.lab.comparison import load_comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.named_parts import is_own_data
from fedcohort.lab.parts import part_folder, remaining_parts, unfinished_parts
from fedcohort.lab.result import Result, identity
from fedcohort.lab.simulation import Progress
from fedcohort.lab.sources import check_present_world, check_sources, source_digests
from fedcohort.lab.trial import Trial


@dataclass
class Training:
    """Trains comparisons into the parts of a folder.

    Attributes:
        out: Folder of the reproduction.
        data: Folder with data sets.
        until: Moment of the monotonic clock at which training stops between rounds.
        on_progress: Called with the name of a part, the rounds done and the rounds in all.
        stop_at: Round at which every part stops, to be continued by a later call; None plays all.
        from_previous: Whether a part whose last checkpoint is damaged or missing goes on from the
            one before. The damaged one is set aside.
        absent: Why a data set could not be loaded, by name.
        stopped: Where training stopped because the time was up, empty if it did not.
    """

    out: Path
    data: Path | None = None
    until: float = float("inf")
    on_progress: Progress | None = None
    from_previous: bool = False
    stop_at: int | None = None
    absent: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    _datasets: dict[str, Dataset] = field(default_factory=dict)
    _parts: dict[Path, ComparisonConfig] = field(default_factory=dict)
    _results: dict[str, Result] | None = None

    @property
    def results(self) -> list[Result]:
        """All results in the folder, those of earlier calls too. Files are read once."""
        return list(self._results_by_identity().values())

    def should_stop(self) -> bool:
        """Return whether the time is up."""
        return monotonic() >= self.until

    def dataset(self, name: str) -> Dataset | None:
        """Return a data set, loaded once; None if it cannot be loaded, see `absent`."""
        if name not in self._datasets and name not in self.absent:
            try:
                self._datasets[name] = load(name, self.data, on_progress=self._on_download)
            except ValueError as error:
                self.absent[name] = str(error)
        return self._datasets.get(name)

    def complete(self, configs: Collection[ComparisonConfig]) -> None:
        """Train every run of these comparisons that is not finished, until the time is up."""
        home = run_folder.parts_folder(self.out)
        if self.from_previous:
            self._recover_checkpoints(configs)
        for config in configs:
            self._check_own_file(config.dataset)
            digests = source_digests(config)
            for folder, part in self._find_parts().items():
                check_sources(folder, digests)
                if part.world_file == config.world_file:
                    check_present_world(folder, config)
            # First the parts that an earlier call left unfinished.
            for folder, part in unfinished_parts(config, self._find_parts()):
                if remaining_parts(part, self._finished()):
                    self._train(folder, part)
            for part in remaining_parts(config, self._finished()):
                self._train(part_folder(part, home), part)

    def _recover_checkpoints(self, configs: Collection[ComparisonConfig]) -> None:
        """Recover the parts of these seeds; others may be in use by the processes of shards."""
        seeds = {seed for config in configs for seed in _seeds(config)}
        for folder, part in self._find_parts().items():
            if not seeds.issuperset(_seeds(part)):
                continue
            with run_folder.locked(folder):
                run_folder.recover_checkpoint(folder)

    def _check_own_file(self, name: str) -> None:
        """Refuse a user's data that have changed since runs in this folder were trained on them."""
        if not is_own_data(name):
            return
        dataset = self.dataset(name)
        if dataset is None:
            return
        for folder, part in self._find_parts().items():
            if part.dataset == name:
                run_folder.check_data_digest(folder, dataset.digest)

    def _results_by_identity(self) -> dict[str, Result]:
        if self._results is None:
            results = gather_results(self.out, configs=self._parts)
            self._results = {identity(run.config): run for run in results}
        return self._results

    def _find_parts(self) -> dict[Path, ComparisonConfig]:
        """Return the settings of all parts that the folder holds, by folder."""
        self._results_by_identity()
        home = run_folder.parts_folder(self.out)
        return {folder: part for folder, part in self._parts.items() if folder.parent == home}

    def _finished(self) -> set[str]:
        """Return the identities of all finished runs."""
        return {key for key, run in self._results_by_identity().items() if run.finished}

    def _train(self, folder: Path, config: ComparisonConfig) -> None:
        """Train one part, from its checkpoint if it has one."""
        if not self.stopped and self.should_stop():
            state = run_folder.load_comparison_checkpoint(folder)
            if state is None:
                self.stopped = f"{folder.name} was not begun"
            else:
                self.stopped = f"{folder.name} at round {state['round']} of {config.rounds}"
        if self.stopped:
            return
        dataset = self.dataset(config.dataset)
        if dataset is None:
            return

        trial = Trial(config, dataset, folder)
        with run_folder.locked(folder):
            trial.restore()
            if self.stop_at is not None and trial.done >= self.stop_at:
                return
            run_folder.load_records(folder, trial.done)  # a gap could never be filled
            run_folder.write_settings(folder, config.as_dict())
            self._play(trial)
        self._parts[folder] = config
        for result in results_of(load_comparison(folder, config)):
            add_result(self._results_by_identity(), result)
        if trial.done < min(config.rounds, self.stop_at or config.rounds):
            self.stopped = f"{folder.name} at round {trial.done} of {config.rounds}"

    def _play(self, trial: Trial) -> None:
        """Play the rounds of a part that are left, and add up what that took."""
        name = f"{trial.folder.name}, {len(trial.keys)} runs"

        def on_round(done: int, accuracy: Floats) -> None:
            if self.on_progress:
                self.on_progress(name, done, trial.config.rounds)

        first = trial.done
        start = perf_counter()
        try:
            trial.run(on_round, self._should_stop_at(first))
        finally:
            _add_cost(trial, seconds=perf_counter() - start, rounds=trial.done - first)

    def _should_stop_at(self, first: int) -> Callable[[], bool]:
        """Return what a part that goes on from a round asks after every round."""
        rounds = count(first + 1)
        return lambda: next(rounds) == self.stop_at or self.should_stop()

    def _on_download(self, done: int, total: int | None) -> None:
        if self.on_progress:
            self.on_progress("download", done, total or done)


def _seeds(config: ComparisonConfig) -> range:
    return range(config.first_seed, config.first_seed + config.seeds)


def _add_cost(trial: Trial, seconds: float, rounds: int) -> None:
    """Add what a call took to what earlier calls took; a call that was killed is not counted."""
    device = trial.engine.device
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    cost = {"part": trial.folder.name, "gpu": gpu, "runs": len(trial.keys)}
    before = run_folder.read_cost(trial.folder)
    spent = {"seconds": seconds, "timed_rounds": rounds, "client_steps": trial.engine.client_steps}
    for name, value in spent.items():
        cost[name] = before.get(name, 0) + value
    run_folder.write_cost(trial.folder, cost)
