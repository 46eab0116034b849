"""A run: begin or resume it, play round after round, save a checkpoint after each, end it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedcohort.arrays import Floats
from fedcohort.checks import check_int
from fedcohort.flower import checkpoint
from fedcohort.flower.availability import gather_clients
from fedcohort.flower.grid import DeadlineGrid, HasEnough
from fedcohort.flower.journal import Journal, Totals, write_announcement
from fedcohort.flower.kept_metrics import KeptMetrics
from fedcohort.flower.models import model_from_record, record_from_model
from fedcohort.flower.observers import Observers
from fedcohort.flower.options import RunOptions
from fedcohort.flower.selection import build_selector, restore_cohort_size
from fedcohort.flower.training import Training
from fedcohort.lab import folder as run_folder

log = logging.getLogger("flwr.fedcohort")
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


class Run:
    """Plays the rounds of one call of `CohortStrategy.start`.

    Args:
        strategy: The `CohortStrategy`; each round calls its four methods.
        training: Its training rounds, with the clients and the wrapped strategy.
        options: Its checked arguments.
        grid: The grid that Flower gives to the server app.
        num_rounds: Number of the last round.
        timeout: Seconds after which an exchange ends if there is no deadline.
        train_config: Configuration that is sent with every training message.
        evaluate_config: Configuration that is sent with every evaluation message.
        evaluate_fn: Evaluates the model on the server, given the round and the model.
    """

    def __init__(
        self,
        strategy: Strategy,
        training: Training,
        options: RunOptions,
        *,
        grid: Grid,
        num_rounds: int,
        timeout: float,
        train_config: ConfigRecord,
        evaluate_config: ConfigRecord,
        evaluate_fn: Evaluate | None,
    ) -> None:
        self.strategy = strategy
        self.training = training
        self.options = options
        self.registry = training.registry
        self.inner = training.inner
        self.memory = training.aggregator.memory
        self.grid = grid
        self.deadlines = training.deadlines
        self.deadline_grid = DeadlineGrid(
            grid,
            self.deadlines.current,
            close_early=options.close_early,
            meanwhile=partial(self.registry.refresh_if_due, grid),
        )
        self.registry.find_busy = self._find_busy
        training.unneeded.take_late = self.deadline_grid.late.take
        self.num_rounds = num_rounds
        self.timeout = timeout
        self.train_config = train_config
        self.evaluate_config = evaluate_config
        self.evaluate_fn = evaluate_fn
        self.metrics = KeptMetrics(training.rules.limits)
        self.observers: Observers | None = None

    def play(self, initial: ArrayRecord) -> Result:
        """Play the rounds that are left; return the last model and the metrics of all rounds."""
        with self._lock_folder(), self._clean_up():
            arrays, done = self._begin(initial)
            self.strategy.summary()
            self._catch_up(done, arrays)
            self._evaluate_on_server(done, arrays)

            for server_round in range(done + 1, self.num_rounds + 1):
                arrays = self._train(server_round, arrays)
                self._save(server_round, arrays)
                self._evaluate_on_clients(server_round, arrays)
                self._evaluate_on_server(server_round, arrays)

            if done < self.num_rounds:
                self._save(self.num_rounds, arrays)  # now with the last evaluations
        self.metrics.result.arrays = arrays
        return self.metrics.result

    def _train(self, server_round: int, arrays: ArrayRecord) -> ArrayRecord:
        """Play a training round and return the model after it."""
        # Who is there, and who is asked?
        messages = self.strategy.configure_train(
            server_round, arrays, self.train_config, self.deadline_grid
        )
        # Send the model, and wait until the deadline, or until enough have answered.
        self.deadline_grid.deadline = self.deadlines.begin_round(server_round)
        replies = self.deadline_grid.send_and_receive(
            messages, timeout=self.timeout, has_enough=self._has_enough
        )
        self.training.troubles = self.deadline_grid.troubles
        # A heartbeat from before a client's death must not count as a sign of life. The round is
        # over, so a SuperLink in trouble is not waited for.
        self.registry.refresh(self.grid, patience=0.0)
        # Which replies count? Aggregate them, tell the selector, write the journal.
        new_arrays, metrics = self.strategy.aggregate_train(server_round, replies)

        self._keep("train", server_round, metrics)
        return arrays if new_arrays is None else new_arrays

    @property
    def _has_enough(self) -> HasEnough | None:
        return None if self.options.enough is None else self.training.has_enough

    def _find_busy(self) -> set[int]:
        """Return the nodes that are at work on a message of a closed round."""
        late = self.deadline_grid.late
        late.pull_if_due()
        return late.busy_nodes

    def _catch_up(self, done: int, arrays: ArrayRecord) -> None:
        """Let clients evaluate the last saved round, if the run ended before they did."""
        if self.metrics.evaluated >= done:
            return
        self.deadline_grid.deadline = self.deadlines.current
        self._evaluate_on_clients(done, arrays)
        self._save(done, arrays)

    def _evaluate_on_clients(self, server_round: int, arrays: ArrayRecord) -> None:
        """Let clients evaluate the model, if the wrapped strategy asks any."""
        messages = self.strategy.configure_evaluate(
            server_round, arrays, self.evaluate_config, self.deadline_grid
        )
        replies = self.deadline_grid.send_and_receive(messages, timeout=self.timeout)
        metrics = self.strategy.aggregate_evaluate(server_round, replies)
        self.metrics.evaluated = server_round
        self._keep("evaluate", server_round, metrics)

    def _evaluate_on_server(self, server_round: int, arrays: ArrayRecord) -> None:
        if self.evaluate_fn is not None:
            self._keep("server", server_round, self.evaluate_fn(server_round, arrays))

    def _keep(self, kind: str, server_round: int, metrics: MetricRecord | None) -> None:
        """Keep the metrics of a round, if there are any, and show them to who follows the run."""
        if metrics is None or not self.metrics.add(kind, server_round, metrics):
            return
        if self.observers is not None:
            self.observers.on_metrics(kind, server_round, metrics)

    def _begin(self, initial: ArrayRecord) -> tuple[ArrayRecord, int]:
        """Wait for clients, and restore the checkpoint if there is one.

        Returns:
            The model to go on with, and the number of rounds that are done.
        """
        options = self.options
        state = None
        if options.folder:
            model = model_from_record(initial)
            checkpoint.check_space(options.folder, model)
            if self.memory is not None:
                self.memory.prepare(model)
            state = checkpoint.load(options.folder, options.resume, model, options.from_previous)
        if state is None:
            self._announce(self.num_rounds)  # so that `fedcohort watch` works while clients connect
        else:
            checkpoint.check_same_run(options.folder, state, options.fixed)
            with checkpoint.restoring(options.folder):
                self.registry.load_state_dict(state["registry"])

        self._gather_clients(is_resumed=state is not None and state["round"] > 0)
        num_clients = len(self.registry)
        if self.memory is not None:
            self.memory.check_space(num_clients, options.cohort_size)
        if state is not None:
            with checkpoint.restoring(options.folder):
                num_clients = check_int("num_clients", state["selector"].get("num_clients", 0), 0)
        selector = build_selector(
            options.selector,
            num_clients=num_clients,
            cohort_size=options.cohort_size,
            seed=options.seed,
            horizon=self.num_rounds,
            deadline=self.deadlines.current,
            data_sizes=self._data_sizes(num_clients),
        )
        if state is not None:
            restore_cohort_size(selector, state["selector"])

        done = 0
        arrays = initial
        totals = Totals()
        if state is not None:
            with checkpoint.restoring(options.folder):
                done = int(state["round"])
                arrays = record_from_model(state["model"])
                totals = Totals(**state["totals"])
                self.metrics.load_state_dict(state.get("metrics", {}))
                selector.load_state_dict(state["selector"])
                self.inner.load_state_dict(state["strategy"])
            log.info("resumed after round %d from %s", done, options.folder)

        journal = Journal(options.folder, done, options.from_previous)
        memory = None if state is None else state.get("replies", {})
        with checkpoint.restoring(options.folder):
            self.training.begin(selector, totals, journal, memory, done)
        self.observers = Observers(options, self._about(self.num_rounds), done)
        self.training.on_row = self.observers.on_row
        self._announce(max(self.num_rounds, done))
        if state is None:
            self._save(0, arrays)  # Before any line of the journal: without it, a run begins anew.
        return arrays, done

    def _data_sizes(self, num_clients: int) -> Floats | None:
        sizes = self.training.data_sizes
        return sizes.look_up(self.registry)[:num_clients] if sizes.is_known else None

    def _gather_clients(self, is_resumed: bool) -> None:
        announced = self.options.num_clients or self.options.cohort_size
        gather_clients(
            self.registry,
            self.grid,
            minimum=1 if is_resumed else self.options.cohort_size,
            wanted=max(announced, len(self.registry.known)),
            wait=self.options.wait,
            deadline=self.deadlines.current,
            partial_start=self.options.partial_start or is_resumed,
        )

    def _announce(self, num_rounds: int) -> None:
        write_announcement(self.options.folder, self._about(num_rounds))

    def _about(self, num_rounds: int) -> dict[str, Any]:
        """Return what the run says about itself."""
        return {
            "rounds": num_rounds,
            "selector": self.options.selector_name,
            "cohort_size": self.options.cohort_size,
            "clients": len(self.registry),
            "deadline": self.options.deadline_text,
            "seed": self.options.seed,
        }

    def _save(self, server_round: int, arrays: ArrayRecord) -> None:
        """Write the checkpoint after a round, if there is a folder."""
        if self.options.folder is None:
            return
        state = {
            "round": server_round,
            "model": model_from_record(arrays),
            "selector": self.training.selector.state_dict(),
            "registry": self.registry.state_dict(),
            "strategy": self.inner.state_dict(),
            "totals": asdict(self.training.totals),
            "replies": self.training.state_dict(),
            "metrics": self.metrics.state_dict(),
            "about": self.options.fixed,
        }
        checkpoint.save(self.options.folder, state)
        if self.memory is not None:
            self.memory.on_checkpoint(server_round)

    @contextmanager
    def _clean_up(self) -> Iterator[None]:
        """Leave no open query behind, and give the strategy its own minimums back.

        This is done also if the run ends by an exception, which is not replaced by another one.
        """
        try:
            yield
        except Exception:
            with suppress(Exception):
                self.registry.node_names.close(self.grid)
            raise
        else:
            self.registry.node_names.close(self.grid)
            self.deadline_grid.late.close()
        finally:
            if self.observers is not None:
                self.observers.close()
            self.inner.restore_minimums()

    def _lock_folder(self) -> AbstractContextManager[None]:
        """Keep other processes out of the folder while the run writes to it."""
        if self.options.folder is None:
            return nullcontext()
        return run_folder.locked(self.options.folder, "folder")
