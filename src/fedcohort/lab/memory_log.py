"""Remembered updates on disk: a checkpoint writes only the rows that changed."""

from pathlib import Path
from typing import Any

from fedcohort.checks import check_int
from fedcohort.lab import folder as run_folder
from fedcohort.learning.update_memory import UpdateMemory

MOST_COPIES = 2  # of each row on disk, on average, before all rows are written anew


class MemoryLog:
    """The updates that a comparison remembers, as a log of changed rows in its folder.

    Every checkpoint names the files that make up its memory. A file is removed when neither the
    last checkpoint nor the one before needs it.

    Args:
        folder: The run folder.
        memory: The memory of the engine.
    """

    def __init__(self, folder: Path, memory: UpdateMemory) -> None:
        self.folder = folder
        self.memory = memory
        self._rows_by_round: dict[int, int] = {}  # rows in each file, the oldest first
        self._previous: tuple[int, ...] = ()

    def save(self, round: int) -> dict[str, Any]:
        """Write what changed since the last checkpoint.

        Args:
            round: Rounds done.

        Returns:
            What the checkpoint must say of the memory.
        """
        before = tuple(self._rows_by_round)
        places, updates = self.memory.take_changed()
        rows_on_disk = sum(self._rows_by_round.values()) + len(places)
        if rows_on_disk > MOST_COPIES * self.memory.values.shape[:2].numel():
            places, updates = self.memory.all_known()
            self._rows_by_round = {}
        if len(places):
            run_folder.save_memory(self.folder, round, places, updates)
            self._rows_by_round[round] = len(places)
        self._previous = before
        return {"rounds": list(self._rows_by_round)}

    def clean(self) -> None:
        """Remove files that neither the last checkpoint nor the one before needs."""
        run_folder.discard_memory(self.folder, keep={*self._rows_by_round, *self._previous})

    def restore(self, stored: Any) -> None:
        """Read the memory of a checkpoint.

        Args:
            stored: What `save` returned for it.

        Raises:
            ValueError: If a file is missing or damaged, or does not fit the engine.
        """
        if not isinstance(stored, dict) or not isinstance(stored.get("rounds"), list):
            raise ValueError(f"memory must name the rounds of its files, got {stored!r}")
        for value in stored["rounds"]:
            round = check_int("round of the memory", value, 0)
            places, updates = run_folder.load_memory(self.folder, round)
            self.memory.restore(places, updates)
            self._rows_by_round[round] = len(places)
