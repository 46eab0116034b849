"""A comparison under way: all runs in lock-step, remembered by a folder, so that none is ever lost."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedcohort.arrays import Floats, Ints
from fedcohort.data import PARTITIONS, Dataset, label_counts, reserve
from fedcohort.files import save_arrays
from fedcohort.lab import folder as rundir
from fedcohort.lab.config import ComparisonConfig, RunKey, run_keys
from fedcohort.lab.recorder import AllocationRecorder
from fedcohort.learning import Engine, Options, Run, Sgd, make_model
from fedcohort.rng import stream
from fedcohort.rounds import Record, play
from fedcohort.selection.lockstep import Lockstep
from fedcohort.selection.registry import Federation, make_selector
from fedcohort.world.bernoulli import bernoulli
from fedcohort.world.classes import class_rates
from fedcohort.world.durations import local_epochs, timed

CHECKPOINT = ("round", "mode", "engine", "selectors")
Told = Callable[[int, Floats], None]  # rounds done, accuracy of every run
Saved = Callable[[int, rundir.Arrays], None]  # first round, the records from there


@dataclass(frozen=True, eq=False)
class Owners:
    """Who owns what under one partition and seed: samples to train on and reserved for testing, per client."""

    train: list[Ints]
    test: list[Ints]


def owners_of(of: ComparisonConfig, data: Dataset, partition: str, seed: int) -> Owners:
    """Deal the samples to the clients and reserve a part of each client's for testing."""
    if partition == "by-client" and data.clients is None:
        raise ValueError(
            "partition 'by-client' needs a data set with a column of clients, got none"
        )
    options: dict[str, dict[str, Any]] = {
        "by-client": {"clients": data.clients},
        "primary-label": {"overlap": of.refill},
    }
    parts = PARTITIONS[partition](
        data.y,
        of.clients,
        stream(seed, "partition", partition),
        samples_per_client=of.samples_per_client,
        **options.get(partition, {}),
    )
    train, test = reserve(parts, stream(seed, "reserve", partition), of.test_fraction)
    if not sum(len(part) for part in test):
        raise ValueError(f"test_fraction must leave samples to test on, got {of.test_fraction}")
    return Owners(train, test)


class Trial:
    """A comparison under way: the engine, the selectors, the world, and the folder that remembers them."""

    def __init__(self, of: ComparisonConfig, data: Dataset, folder: Path) -> None:
        self.of, self.folder, self.places, self.digest = of, folder, run_keys(of), data.digest
        pairs = {(place.partition, place.seed) for place in self.places}
        self.owners = {pair: owners_of(of, data, *pair) for pair in sorted(pairs)}
        self.labels = {
            partition: label_counts(
                data.y, self.owners[partition, of.first_seed].train, data.num_classes
            )
            for partition in of.partitions
        }
        tests = {
            pair: np.concatenate(owners.test) for pair, owners in self.owners.items()
        }  # shared by runs of a pair
        scaled = data.scaled(of.scaling)
        images, labels, shape = scaled.x, data.y, scaled.x.shape[1:]
        self.official: Ints | None = None
        if of.official_every:
            if scaled.test_x is None or data.test_y is None:
                raise ValueError(
                    f"official_every must be 0 for {of.dataset}, which has no test set of its own, got {of.official_every}"
                )
            self.official = np.arange(
                len(labels), len(labels) + len(data.test_y)
            )  # behind the samples that clients own
            images, labels = (
                np.concatenate([images, scaled.test_x]),
                np.concatenate([labels, data.test_y]),
            )
        made = {
            place.seed: make_model(of.model, shape, data.num_classes, place.seed)
            for place in self.places
        }
        options = Options(of.device, of.precision, of.compiled, of.mode, of.slots, of.max_norm)
        sgd = Sgd(of.learning_rate, of.momentum, of.batch_size)
        self.engine = Engine(
            [made[place.seed] for place in self.places],
            torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32)),
            torch.from_numpy(labels),
            [self._run(place, tests[place.partition, place.seed]) for place in self.places],
            sgd,
            options,
        )
        self.selector = self._selectors()
        self.done = 0

    def _run(self, place: RunKey, test: Ints) -> Run:
        owners = self.owners[place.partition, place.seed]
        epochs = local_epochs(self.of.clients, place.seed, self.of.epochs)
        of = self.of
        return Run(
            place.seed,
            owners.train,
            test,
            epochs,
            place.mu,
            place.aggregation,
            of.server_rate,
            of.server_momentum,
        )

    def _selectors(self) -> Lockstep:
        of, made, counts = self.of, [], []
        for name in of.selectors:
            rows = [row for row, place in enumerate(self.places) if place.selector == name]
            federation = Federation(
                of.clients,
                of.cohort,
                rng=[self.places[row].seed for row in rows],
                horizon=of.rounds,
                success_rates=class_rates(of.clients, of.rates),
                loss_of=partial(self._losses, rows),
                candidates=of.candidates,
                eta=of.eta,
                sampler=of.sampler,
            )
            made.append(make_selector(name, federation))
            counts.append(len(rows))
        return Lockstep(made, counts)

    def _losses(self, rows: list[int], clients: Ints) -> Floats:
        return self.engine.losses(rows, clients)

    def world(self) -> Iterator[Floats]:
        """Return every run's durations, round by round: a seed is one world, whatever the scheme, partition or rule."""
        seeds = [place.seed for place in self.places]
        answers = bernoulli(class_rates(self.of.clients, self.of.rates), seeds)
        seconds = self.of.seconds_per_epoch * np.stack([run.epochs for run in self.engine.runs])
        return timed(answers, seconds, seeds, self.of.jitter)

    def restore(self) -> None:
        """Go on from the folder's checkpoint, if there is one; it must be of the same data."""
        rundir.check_data(self.folder, self.digest)
        state = rundir.load_checkpoint(self.folder, CHECKPOINT)
        if state is None:
            return
        self.engine.mode = state["mode"]
        self.engine.slots = self.engine.slots or state.get("slots")
        self.engine.load_state_dict(
            {name: torch.from_numpy(value) for name, value in state["engine"].items()}
        )
        self.selector.load_state_dict(state["selectors"])
        self.done = state["round"]

    def run(
        self,
        told: Told | None = None,
        over: Callable[[], bool] = lambda: False,
        saved: Saved | None = None,
    ) -> None:
        """Play the rounds that are left, or until it is over; every so many, and in the end, write records and a checkpoint.

        told: after every round; saved: the first round and the records of those to be remembered, before their checkpoint.
        """
        of, kept, watch = self.of, [], AllocationRecorder(self.of.rounds)
        rundir.write_data(self.folder, self.digest)
        save_arrays(self.folder / "owners.npz", self.labels)
        self._watch(watch, self.done)
        played = play(
            self.selector,
            self.world(),
            of.rounds,
            self.engine,
            deadline=of.last_second,
            start=self.done,
        )
        for round, record in enumerate(played, start=self.done):
            last = round == of.rounds - 1
            if last or (round + 1) % of.evaluate_every == 0:
                accuracy, loss = self.engine.evaluate()
            else:
                accuracy = loss = np.full(len(self.places), np.nan)
            kept.append(self._kept(record, accuracy, loss) | self._official(round + 1))
            if told:
                told(round + 1, accuracy)
            stop = over()
            if last or stop or (round + 1) % of.checkpoint_every == 0:
                watch.save(self.folder, self.done)
                self._save(kept, round + 1, saved)
                kept, watch = [], AllocationRecorder(of.rounds)
            if not last:
                self._watch(watch, round + 1)
            if stop:
                return

    def _watch(self, watch: AllocationRecorder, round: int) -> None:
        for name, selector in zip(self.of.selectors, self.selector.selectors, strict=True):
            watch.look(name, selector, round)

    def _official(self, done: int) -> dict[str, Floats]:
        """Return the accuracy on the data set's own test set, nan in rounds without that test; nothing if it is not asked."""
        if self.official is None:
            return {}
        if done % self.of.official_every and done != self.of.rounds:
            return {"official_accuracy": np.full(len(self.places), np.nan)}
        return {"official_accuracy": self.engine.evaluate(self.official)[0]}

    def _kept(self, record: Record, accuracy: Floats, loss: Floats) -> dict[str, Any]:
        """Return what is kept of a round; a model sent for nothing wastes its bytes once, one rejected twice."""
        idle = (~record.arrived).sum(axis=-1) + 2 * (record.arrived & ~record.valid).sum(axis=-1)
        return {
            "clients": record.cohort.clients.astype(np.int32),
            "arrived": record.arrived,
            "valid": record.valid,
            "accuracy": accuracy,
            "loss": loss,
            "seconds": record.seconds,
            "wasted_seconds": record.wasted,
            "wasted_bytes": idle * self.engine.model_bytes,
        }

    def _save(self, kept: list[dict[str, Any]], done: int, saved: Saved | None) -> None:
        records = {name: np.stack([row[name] for row in kept]) for name in kept[0]}
        rundir.save_records(self.folder, self.done, records)
        if saved:
            saved(self.done, records)
        engine = {name: value.cpu().numpy() for name, value in self.engine.state_dict().items()}
        how = {"mode": self.engine.mode, "slots": self.engine.slots}
        state = {"round": done, **how, "engine": engine, "selectors": self.selector.state_dict()}
        rundir.save_checkpoint(self.folder, state)
        self.done = done
