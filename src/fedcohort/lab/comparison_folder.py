"""A comparison as its run folder holds it."""

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from fedcohort.arrays import Ints
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.config_storage import LATER_SETTINGS
from fedcohort.lab.record_checks import CLASS_ACCURACY, check_label_counts, check_records
from fedcohort.lab.recorder import Allocations, read_allocations


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison as its run folder holds it. Every file is read at most once.

    Attributes:
        folder: Its run folder.
        config: Its settings.
        records: What was recorded of each round, [T, runs, ...] by name; nothing if no round was
            played yet.
    """

    folder: Path
    config: ComparisonConfig
    records: run_folder.Arrays

    @property
    def rounds_done(self) -> int:
        """How many rounds are recorded."""
        return len(self.records["accuracy"]) if self.records else 0

    @cached_property
    def allocations(self) -> dict[str, Allocations]:
        """The recorded probabilities by selector."""
        return read_allocations(self.folder)

    @cached_property
    def label_counts(self) -> dict[str, Ints]:
        """How many samples of each label every client owns, [K, C] by partition."""
        counts = run_folder.load_label_counts(self.folder)
        check_label_counts(self.config, counts, self.folder / run_folder.LABEL_COUNTS)
        return counts

    @cached_property
    def class_rates(self) -> tuple[float, ...]:
        """The mean success rate of each class of clients; nothing if it was not recorded."""
        rates = run_folder.load_class_rates(self.folder)
        by_class = self.records.get(CLASS_ACCURACY)
        if rates is None or by_class is None:
            return ()
        if len(rates) != by_class.shape[-1]:
            raise ValueError(
                f"{self.folder / run_folder.CLASS_RATES} must hold the success rates of "
                f"{by_class.shape[-1]} classes, as the records do, got {len(rates)}"
            )
        return tuple(rates.tolist())

    @cached_property
    def environment(self) -> dict[str, str]:
        """The versions and the machine it was computed with."""
        return run_folder.read_environment(self.folder)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Environment, cost and the digest of the samples, as far as they are known."""
        provenance = {**self.environment, **run_folder.read_cost(self.folder)}
        digest = run_folder.read_data_digest(self.folder)
        if digest is not None:
            provenance["data"] = digest
        return provenance


def load_comparison(
    folder: Path, config: ComparisonConfig | None = None, rounds: int | None = None
) -> Comparison:
    """Return the comparison that a folder holds.

    Args:
        folder: The run folder.
        config: Its settings, if they were read before.
        rounds: How many rounds to load. None loads all there are.

    Raises:
        ValueError: If a file is damaged, or the records do not fit the settings.
    """
    if config is None:
        config = read_config(folder)
    records = run_folder.load_records(folder, rounds)
    if records:
        check_records(config, records, folder / run_folder.RECORDS)
    return Comparison(folder, config, records)


def read_config(folder: Path) -> ComparisonConfig:
    """Return the settings of a comparison.

    Raises:
        ValueError: If the file does not name every setting of its run.
    """
    path = run_folder.settings_path(folder)
    settings = run_folder.read_settings(folder)
    missing = []
    for field in fields(ComparisonConfig):
        is_optional = field.default is None or field.name in LATER_SETTINGS
        if not is_optional and field.name not in settings:
            missing.append(field.name)
    if missing:
        raise ValueError(
            f"{path} must name every setting of its run, got none of {', '.join(missing)}"
        )
    try:
        return ComparisonConfig.from_dict(settings)
    except ValueError as error:
        raise ValueError(f"{path} must hold the settings of a run, got: {error}") from None


def load_chunk(path: Path, config: ComparisonConfig) -> run_folder.Arrays:
    """Return one chunk of a comparison's records."""
    chunk = run_folder.load_chunk(path)
    check_records(config, chunk, path)
    return chunk
