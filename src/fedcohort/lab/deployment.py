"""A Flower run as its folder holds it: the journal and what the run said about itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedcohort.lab import folder as run_folder


@dataclass(frozen=True, eq=False)
class Deployment:
    """A Flower run, loaded from its run folder. Every file is read at most once.

    Attributes:
        folder: Its run folder.
        rounds: One entry of the journal per round, without a last one that is being written.
    """

    folder: Path
    rounds: Sequence[Mapping[str, Any]]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the run said about itself when it began."""
        return run_folder.read_about(self.folder)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The versions and the machine it was computed with."""
        return run_folder.read_environment(self.folder)


def load_deployment(folder: Path) -> Deployment:
    """Return the Flower run that a folder holds.

    Args:
        folder: The run folder.

    Raises:
        ValueError: If a line of the journal is damaged.
    """
    return Deployment(folder, run_folder.load_journal(folder))
