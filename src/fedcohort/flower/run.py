"""A run and its folder: begin or resume it, save a checkpoint after each round, end it."""

import logging
from dataclasses import asdict, dataclass
from pathlib import Path

from flwr.app import ArrayRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from fedcohort.flower import checkpoint
from fedcohort.flower.availability import gather_clients
from fedcohort.flower.journal import Journal, Totals, write_announcement
from fedcohort.flower.models import model_from_record, record_from_model
from fedcohort.flower.selection import build_selector, selector_name
from fedcohort.flower.training import Training
from fedcohort.selection.protocol import Selector

log = logging.getLogger("flwr.fedcohort")


@dataclass(frozen=True)
class RunOptions:
    """The checked arguments of `CohortStrategy` that concern the run as a whole."""

    selector: str | Selector
    cohort_size: int
    num_clients: int | None
    seed: int
    deadline: float | None
    aggregation: str
    wait: float
    folder: Path | None
    resume: bool
    tensorboard: bool

    @property
    def selector_name(self) -> str:
        """The registered name of the selector, or its class."""
        return selector_name(self.selector)

    @property
    def fixed(self) -> dict[str, str]:
        """The options that a resumed run must share with the rounds before."""
        return {"selector": self.selector_name, "aggregation": self.aggregation}


class Run:
    """Begins or resumes a run, saves it and ends it.

    Args:
        options: The checked arguments of `CohortStrategy`.
        training: The training rounds, with their clients and the wrapped strategy.
    """

    def __init__(self, options: RunOptions, training: Training) -> None:
        self.options = options
        self.training = training
        self.registry = training.registry
        self.inner = training.inner
        self.result = Result()

    def begin(self, grid: Grid, initial: ArrayRecord, num_rounds: int) -> tuple[ArrayRecord, int]:
        """Wait for clients, and restore the checkpoint if there is one.

        Args:
            grid: The grid that the clients are connected to.
            initial: The first model of a new run.
            num_rounds: Number of the last round.

        Returns:
            The model to go on with, and the number of rounds that are done.
        """
        options = self.options
        state = None
        if options.folder:
            state = checkpoint.load(options.folder, options.resume, model_from_record(initial))
        if state is None:
            self._announce(num_rounds)  # so that `fedcohort watch` works while clients connect
        else:
            checkpoint.check_same_run(options.folder, state, options.fixed)
            self.registry.load_state_dict(state["registry"])

        self._gather_clients(grid, is_resumed=state is not None)
        num_clients = len(self.registry)
        if state is not None:
            num_clients = int(state["selector"].get("num_clients", 0))
        selector = build_selector(
            options.selector,
            num_clients=num_clients,
            cohort_size=options.cohort_size,
            seed=options.seed,
            horizon=num_rounds,
        )

        if state is None:
            done = 0
            arrays = initial
            totals = Totals()
            self.result = Result()
        else:
            done = int(state["round"])
            arrays = record_from_model(state["model"])
            totals = Totals(**state["totals"])
            self.result = checkpoint.restore_result(state)
            selector.load_state_dict(state["selector"])
            self.inner.load_state_dict(state["strategy"])
            log.info("resumed after round %d from %s", done, options.folder)

        journal = Journal(options.folder, done, options.tensorboard)
        self.training.begin(selector, totals, journal)
        self._announce(max(num_rounds, done))
        return arrays, done

    def save(self, server_round: int, arrays: ArrayRecord) -> None:
        """Write the checkpoint after a round; without a folder do nothing."""
        if self.options.folder is None:
            return
        state = {
            "round": server_round,
            "model": model_from_record(arrays),
            "selector": self.training.selector.state_dict(),
            "registry": self.registry.state_dict(),
            "strategy": self.inner.state_dict(),
            "totals": asdict(self.training.totals),
            "metrics": checkpoint.plain_metrics(self.result),
            "about": self.options.fixed,
        }
        checkpoint.save(self.options.folder, state)

    def end(self, grid: Grid) -> None:
        """Leave no open query behind, and give the strategy its own minimums back."""
        self.registry.node_names.close(grid)
        self.training.journal.close()
        self.inner.restore_minimums()

    def _gather_clients(self, grid: Grid, is_resumed: bool) -> None:
        options = self.options
        announced = options.num_clients or options.cohort_size
        gather_clients(
            self.registry,
            grid,
            minimum=1 if is_resumed else options.cohort_size,
            wanted=max(announced, len(self.registry.known)),
            wait=options.wait,
            deadline=options.deadline,
        )

    def _announce(self, num_rounds: int) -> None:
        about = {
            "rounds": num_rounds,
            "selector": self.options.selector_name,
            "cohort_size": self.options.cohort_size,
            "clients": len(self.registry),
            "deadline": self.options.deadline,
            "seed": self.options.seed,
        }
        write_announcement(self.options.folder, about)
