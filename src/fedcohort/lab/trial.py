"""A comparison under way: all runs in lock-step, with records and checkpoints on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.arrays import Floats, Ints
from fedcohort.checks import LARGEST_FLOAT
from fedcohort.data import Dataset, label_counts
from fedcohort.files import digest_file
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.memory_log import MemoryLog
from fedcohort.lab.owners import Owners, deal_samples
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.lab.reliability import reliability
from fedcohort.lab.runs import RunKey, count_runs, run_keys
from fedcohort.lab.sources import check_sources, source_digests
from fedcohort.lab.trial_engine import make_engine
from fedcohort.lab.trial_rows import OnRound, TrialRows
from fedcohort.lab.trial_selectors import make_selectors
from fedcohort.lab.trial_state import restore_trial, trial_state
from fedcohort.lab.trial_world import RunsWorld, open_runs_world
from fedcohort.learning import Run, make_model
from fedcohort.memory import check_memory
from fedcohort.rounds import play
from fedcohort.selection.protocol import Selector
from fedcohort.world.durations import local_epochs

OnCheckpoint = Callable[[int, run_folder.Arrays], None]  # first round, the records from there


class Trial:
    """A comparison under way: the engine, the selectors, the world, and the run folder.

    Args:
        config: The settings.
        data: The data set.
        folder: The run folder; nothing is written there before `run`.

    Attributes:
        keys: Which run each row of the batch axis is.
        done: How many rounds are played and written.

    Raises:
        ValueError: If the settings do not fit the data or the world.
    """

    def __init__(self, config: ComparisonConfig, data: Dataset, folder: Path) -> None:
        _check_clients_memory(config)
        self.config = config
        self.folder = folder
        self.keys = run_keys(config)
        self.done = 0
        self.digest = data.digest
        self.sources = source_digests(config)

        self.owners: dict[tuple[str, int], Owners] = {}
        for partition, seed in sorted({(key.partition, key.seed) for key in self.keys}):
            self.owners[partition, seed] = deal_samples(config, data, partition, seed)
        self.label_counts: dict[tuple[str, int], Ints] = {}
        for pair, owners in self.owners.items():
            self.label_counts[pair] = label_counts(data.y, owners.train, data.num_classes)

        module = make_model(config.model, data.x.shape[1:], data.num_classes, config.first_seed)
        self.model_bytes = 4 * sum(weights.numel() for weights in module.parameters())
        world = self.open_world()
        self.success_rates = world.success_rates
        self.reliability = reliability(config, world.rates_by_owners)
        shape = (len(self.owners), config.clients)
        rates = np.broadcast_to(world.rates_by_owners, shape)
        classes = np.broadcast_to(self.reliability.classes, shape)
        self.rates = dict(zip(self.owners, rates, strict=True))
        self.classes = dict(zip(self.owners, classes, strict=True))

        runs = [self._make_run(key) for key in self.keys]
        self.engine, self.official_samples = make_engine(config, data, runs)
        self.selector = make_selectors(
            config, self.keys, self.success_rates, self._data_sizes(), self._probe_losses
        )
        self.memory_log: MemoryLog | None = None
        if self.engine.memory is not None:
            self.memory_log = MemoryLog(folder, self.engine.memory)

    def _make_run(self, key: RunKey) -> Run:
        owners = self.owners[key.partition, key.seed]
        return Run(
            key.seed,
            owners.train,
            owners.test_samples,
            local_epochs(self.config.clients, key.seed, self.config.epochs),
            key.mu,
            key.aggregation,
            self.config.server_rate,
            self.config.server_momentum,
            server_optimizer=self.config.server_optimizer,
            success_rates=self.rates[key.partition, key.seed],
            test_owners=owners.test_owners,
            classes=self.classes[key.partition, key.seed],
        )

    def _data_sizes(self) -> Ints:
        """Return how many samples each client trains on, [runs, K]."""
        counts = [self.label_counts[key.partition, key.seed] for key in self.keys]
        return np.stack([labels.sum(axis=-1) for labels in counts])

    def _probe_losses(self, rows: list[int], clients: Ints) -> Floats:
        """Return the losses of clients; that of a model that diverged is the highest."""
        losses = self.engine.losses(rows, clients)
        return np.where(np.isfinite(losses), losses, LARGEST_FLOAT)

    def open_world(self) -> RunsWorld:
        """Return what every client of every run would do, from the first round on."""
        return open_runs_world(self.config, self.keys, self.label_counts, self.model_bytes)

    def restore(self, state: dict[str, Any] | None = None) -> None:
        """Go on from a checkpoint.

        Args:
            state: The checkpoint's state. None reads the folder's checkpoint, if it has one, and
                refuses one of other data.
        """
        if state is None:
            run_folder.check_data_digest(self.folder, self.digest)
            check_sources(self.folder, self.sources)
            state = run_folder.load_comparison_checkpoint(self.folder)
        if state is None:
            return
        path = self.folder / run_folder.CHECKPOINT
        self.done = restore_trial(self.engine, self.selector, state, self.config.rounds, path)
        if self.memory_log is not None and self.done < self.config.rounds:
            self.memory_log.restore(state.get("memory"))

    def run(
        self,
        on_round: OnRound | None = None,
        should_stop: Callable[[], bool] | None = None,
        on_checkpoint: OnCheckpoint | None = None,
    ) -> None:
        """Play the rounds that are left, with a checkpoint every so many rounds and at the end.

        Args:
            on_round: Called for every round with the rounds done and every run's accuracy [runs],
                nan in rounds without a test; on a GPU one round later.
            should_stop: Called after every round; True writes a checkpoint and ends the call.
            on_checkpoint: Called before every checkpoint with the first round and the records
                since then.
        """
        config = self.config
        self._write_inputs()
        if not run_folder.has_checkpoint(self.folder):
            self._save_checkpoint(self.done)  # Before any record: without it, a run begins anew.
        recorder = AllocationRecorder(config.rounds)
        self._record_allocations(recorder, self.done)
        rows = TrialRows(
            config,
            self.engine,
            self.selector.cohort_size,
            self.official_samples,
            self._recorded_names(),
            on_round,
        )
        world = self.open_world()
        available = world.available
        if available is not None:
            available = recorder.record_online(available, self._first_runs(), self.done)
        records = play(
            self.selector,
            world.seconds,
            config.rounds,
            self.engine,
            deadline=config.seconds_until_deadline,
            start=self.done,
            available=available,
        )
        for done, record in enumerate(records, start=self.done + 1):
            rows.add(done, record)
            is_last = done == config.rounds
            is_stopped = should_stop is not None and should_stop()
            if is_last or is_stopped or done % config.checkpoint_every == 0:
                recorder.save(self.folder, self.done)
                self._save(rows.take(), done, on_checkpoint)
            if is_stopped:
                return
            if not is_last:
                self._record_allocations(recorder, done)

    def _write_inputs(self) -> None:
        """Write what the run trains on: the digest of its samples, and who owns which labels."""
        run_folder.write_data_digest(self.folder, self.digest)
        if self.config.world_file is not None:
            digest = digest_file(Path(self.config.world_file))
            run_folder.write_world_digest(self.folder, digest)
        run_folder.write_sources(self.folder, self.sources)
        first_seed = self.config.first_seed
        counts = {name: self.label_counts[name, first_seed] for name in self.config.partitions}
        run_folder.save_label_counts(self.folder, counts)
        run_folder.save_class_rates(
            self.folder,
            self.reliability.rates,
            members=self.reliability.members,
            quarters=self.reliability.quarters,
        )

    def _recorded_names(self) -> list[str]:
        """Return what the rounds before recorded; nothing if there are none.

        A run that an older version began goes on with what it recorded, so that all rounds of a
        folder hold the same.
        """
        if not self.done:
            return []
        return list(run_folder.load_chunk(run_folder.chunk_path(self.folder, 0)))

    def _record_allocations(self, recorder: AllocationRecorder, round: int) -> None:
        """Record how likely clients are to be asked, unless it depends on who is online."""
        if self.config.knows_offline:
            return
        for name, selector in zip(self.config.selectors, self.selector.selectors, strict=True):
            recorder.record(name, selector, round)

    def _first_runs(self) -> dict[int, tuple[str, Selector]]:
        """Return name and selector of each scheme's first run, by its row."""
        first: dict[str, int] = {}
        for row, key in enumerate(self.keys):
            first.setdefault(key.selector, row)
        return {row: (name, self.selector.selectors[row]) for name, row in first.items()}

    def _save(
        self, records: run_folder.Arrays, done: int, on_checkpoint: OnCheckpoint | None
    ) -> None:
        """Write the records since the last checkpoint, then a checkpoint."""
        run_folder.save_records(self.folder, self.done, records)
        if on_checkpoint:
            on_checkpoint(self.done, records)
        self._save_checkpoint(done)
        self.done = done

    def _save_checkpoint(self, done: int) -> None:
        state = trial_state(self.engine, self.selector, done)
        # After the last round nobody needs what clients sent before.
        log = self.memory_log if done < self.config.rounds else None
        if log is not None:
            state["memory"] = log.save(done)
        run_folder.save_checkpoint(self.folder, state)
        if log is not None:
            log.clean()


def _check_clients_memory(config: ComparisonConfig) -> None:
    """Refuse a comparison whose clients cannot fit the memory, each with epochs and a share."""
    runs = count_runs(config)
    check_memory(
        "clients and seeds",
        f"{config.clients} clients and {config.seeds} seeds in {runs} runs",
        needed=2 * 8 * config.clients * runs,
    )
