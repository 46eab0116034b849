"""A comparison under way: all runs in lock-step, with records and checkpoints on disk."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedcohort.arrays import Floats, Ints
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
from fedcohort.lab.trial_records import make_row
from fedcohort.lab.trial_state import restore_trial, trial_state
from fedcohort.lab.trial_world import RunsWorld, open_runs_world
from fedcohort.learning import Engine, Evaluation, Options, Run, Sgd, make_model
from fedcohort.memory import check_memory
from fedcohort.rounds import play
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.protocol import Selector
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.durations import local_epochs

OnRound = Callable[[int, Floats], None]  # rounds done, accuracy of every run
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

        self.official_samples: Ints | None = None
        self.engine = self._make_engine(data)
        self.selector = self._make_selectors()
        self.memory_log: MemoryLog | None = None
        if self.engine.memory is not None:
            self.memory_log = MemoryLog(folder, self.engine.memory)

    def _make_engine(self, data: Dataset) -> Engine:
        config = self.config
        scaled = data.scaled(config.scaling)
        images = scaled.x
        labels = data.y
        if config.official_every:
            if scaled.test_x is None or data.test_y is None:
                raise ValueError(
                    f"official_every must be 0 for {config.dataset}, which has no test set of its "
                    f"own, got {config.official_every}"
                )
            # The official test set stands behind the samples that clients own.
            first = len(labels)
            self.official_samples = np.arange(first, first + len(data.test_y))
            images = np.concatenate([images, scaled.test_x])
            labels = np.concatenate([labels, data.test_y])

        models = {}
        for seed in {key.seed for key in self.keys}:
            models[seed] = make_model(config.model, images.shape[1:], data.num_classes, seed)
        runs = [self._make_run(key) for key in self.keys]
        return Engine(
            [models[key.seed] for key in self.keys],
            torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32)),
            torch.from_numpy(labels),
            runs,
            Sgd(config.learning_rate, config.momentum, config.batch_size),
            Options(
                config.device,
                config.precision,
                config.compiled,
                config.mode,
                config.slots,
                config.max_norm,
                config.memory_precision,
            ),
        )

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

    def _make_selectors(self) -> Lockstep:
        """Return the selectors of all runs: one per scheme, or one per run.

        Where the server knows who is offline, runs of one scheme may ask cohorts of different
        size, and a selector cannot.
        """
        selectors = []
        counts = []
        for name in self.config.selectors:
            rows = [row for row, key in enumerate(self.keys) if key.selector == name]
            parts = [[row] for row in rows] if self.config.knows_offline else [rows]
            for part in parts:
                selectors.append(make_selector(name, self._federation(part)))
                counts.append(len(part))
        return Lockstep(selectors, counts)

    def _federation(self, rows: list[int]) -> Federation:
        """Return what the selector of these runs may know."""
        config = self.config
        success_rates = self.success_rates
        if success_rates.ndim > 1:
            success_rates = success_rates[rows]
        return Federation(
            config.clients,
            config.cohort,
            rng=[self.keys[row].seed for row in rows],
            horizon=config.rounds,
            success_rates=success_rates,
            loss_of=partial(self._probe_losses, rows),
            candidates=config.candidates,
            eta=config.eta,
            sampler=config.sampler,
            data_sizes=self._data_sizes(rows),
            deadline=config.seconds_until_deadline,
        )

    def _data_sizes(self, rows: list[int]) -> Ints:
        """Return how many samples each client trains on in some runs, [runs, K]."""
        keys = [self.keys[row] for row in rows]
        return np.stack([self.label_counts[key.partition, key.seed].sum(axis=-1) for key in keys])

    def _probe_losses(self, rows: list[int], clients: Ints) -> Floats:
        return self.engine.losses(rows, clients)

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
            on_round: Called after every round with the rounds done and every run's accuracy [runs],
                nan in rounds without a test.
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
        recorded = self._recorded_names()
        rows: list[dict[str, Any]] = []
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
            row = make_row(
                record, self._evaluate(done), self.selector.cohort_size, self.model_bytes
            )
            if self.official_samples is not None:
                row["official_accuracy"] = self._evaluate_official(self.official_samples, done)
            rows.append({name: row[name] for name in recorded or row})
            if on_round:
                on_round(done, row["accuracy"])

            is_last = done == config.rounds
            is_stopped = should_stop is not None and should_stop()
            if is_last or is_stopped or done % config.checkpoint_every == 0:
                recorder.save(self.folder, self.done)
                self._save(rows, done, on_checkpoint)
                rows = []
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

    def _evaluate(self, done: int) -> Evaluation:
        """Return how well every run does, nan in rounds without a test."""
        if done == self.config.rounds or done % self.config.evaluate_every == 0:
            return self.engine.evaluate()
        return self.engine.untested()

    def _evaluate_official(self, samples: Ints, done: int) -> Floats:
        """Return the accuracy on the data set's own test set, nan in rounds without that test."""
        if done == self.config.rounds or done % self.config.official_every == 0:
            return self.engine.evaluate(samples).accuracy
        return np.full(len(self.keys), np.nan)

    def _save(
        self, rows: list[dict[str, Any]], done: int, on_checkpoint: OnCheckpoint | None
    ) -> None:
        """Write the records since the last checkpoint, then a checkpoint."""
        records = {}
        for name in rows[0]:
            records[name] = np.stack([row[name] for row in rows])
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
