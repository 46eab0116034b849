"""The options of a run, as `CohortStrategy` has checked them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.checks import check_choice
from fedcohort.files import check_folder
from fedcohort.flower.deadlines import AutoDeadline, DeadlineFunction
from fedcohort.flower.selection import selector_name
from fedcohort.lab.trackers import check_installed
from fedcohort.references import is_reference, source_digest
from fedcohort.selection.protocol import Selector

LOGS = ("tensorboard", "mlflow", "wandb")


@dataclass(frozen=True)
class RunOptions:
    """The checked arguments of `CohortStrategy` that concern the run as a whole."""

    strategy_name: str
    selector: str | Selector
    cohort_size: int
    num_clients: int | None
    seed: int
    deadline: float | DeadlineFunction | None
    enough: int | None
    aggregation: str
    close_early: bool
    wait: float
    partial_start: bool
    least_clients: int
    pause: float
    folder: Path | None
    resume: bool
    from_previous: bool
    logs: tuple[str, ...]
    metrics_port: int | None
    metrics_host: str

    @property
    def selector_name(self) -> str:
        """The registered name of the selector, or its class."""
        return selector_name(self.selector)

    @property
    def deadline_text(self) -> float | str | None:
        """The deadline as the run announces it."""
        if not callable(self.deadline):
            return self.deadline
        return "auto" if isinstance(self.deadline, AutoDeadline) else "function"

    @property
    def fixed(self) -> dict[str, str]:
        """The options that a resumed run must share with the rounds before."""
        fixed = {"selector": self.selector_name, "aggregation": self.aggregation}
        for kind, name in (("selector", self.selector), ("aggregation", self.aggregation)):
            if isinstance(name, str) and is_reference(name):
                fixed[f"source of {name}"] = source_digest(kind, name)
        fixed["strategy"] = self.strategy_name
        return fixed


def check_logs(log: Any, tensorboard: bool) -> tuple[str, ...]:
    """Return where scalars are written, as a tuple of names.

    Raises:
        ValueError: If a name is unknown, or its library is not installed.
    """
    logs = [log] if isinstance(log, str) else list(log or ())
    if tensorboard and "tensorboard" not in logs:
        logs.append("tensorboard")
    for name in logs:
        check_choice("log", name, LOGS)
        check_installed(name)
    return tuple(logs)


def check_files(folder: str | Path | None, resume: bool, from_previous: bool, writes: bool) -> None:
    """Check that there is a folder where one is needed.

    Args:
        folder: Folder of the run.
        resume: Whether to go on with the run in it.
        from_previous: Whether to go on from the checkpoint before the last one.
        writes: Whether scalars are written into it.

    Raises:
        ValueError: If the folder is missing or no folder, or the options contradict each other.
    """
    if folder is not None:
        check_folder("folder", Path(folder))
    elif resume or writes:
        raise ValueError("folder must be given for resume and log, got None")
    if from_previous and not resume:
        raise ValueError("resume must be true where from_previous is, got False")


def check_closing(enough: int | None, close_early: bool, sampled: int | None) -> None:
    """Check that rounds may close before the deadline.

    Args:
        enough: Number of valid answers at which a round closes; None waits for all.
        close_early: Whether a round may end before the deadline at all.
        sampled: Number of clients that a private strategy draws its noise for; None for none.

    Raises:
        ValueError: If they may not.
    """
    if enough is None:
        return
    if not close_early:
        raise ValueError("close_early must be true where enough is given, got False")
    if sampled is not None and enough < sampled:
        raise ValueError(
            f"enough must be at least num_sampled_clients of the strategy, {sampled}, got {enough}"
        )
