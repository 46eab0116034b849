"""A comparison and its run folder: begin it, go on with it, load it."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.arrays import Floats, Ints
from fedcohort.checks import check_choice
from fedcohort.data import Dataset, load
from fedcohort.files import check_folder, digest_file
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import LATER_SETTINGS, ComparisonConfig, open_world
from fedcohort.lab.record_checks import CLASS_ACCURACY, check_label_counts, check_records
from fedcohort.lab.recorder import Allocations, read_allocations
from fedcohort.lab.simulation import Progress
from fedcohort.lab.sources import check_present_sources, import_sources
from fedcohort.lab.trackers import BACKENDS, check_installed
from fedcohort.lab.tracking import track
from fedcohort.world.options import MissingData

if TYPE_CHECKING:
    from fedcohort.lab.trial import Trial


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


def run_comparison(
    config: ComparisonConfig | None,
    folder: Path,
    *,
    data: Path | None = None,
    resume: bool = False,
    from_previous: bool = False,
    overwrite: bool = False,
    log: str | None = None,
    on_progress: Progress | None = None,
) -> Comparison:
    """Train what is left of a comparison and return it; a finished one is only loaded.

    Args:
        config: The settings. None takes those of the run that the folder holds.
        folder: The run folder.
        data: Folder with data sets.
        resume: Whether to go on with an unfinished run.
        from_previous: Whether to go on from the checkpoint before the last one, if the last one
            is damaged or missing. The damaged one is set aside.
        overwrite: Whether to discard what the folder holds.
        log: "tensorboard", "mlflow" or "wandb" to write scalars there too.
        on_progress: Called with a few words, the rounds done and the rounds in all.

    Raises:
        ValueError: If the folder holds something else, the settings are not those of its run, or
            the data cannot be loaded. Nothing is discarded or written before that is known.

    Examples:
        >>> from pathlib import Path
        >>> from fedcohort.lab.comparison import run_comparison
        >>> from fedcohort.lab.config import LATER_SETTINGS, ComparisonConfig
        >>> config = ComparisonConfig(selectors=("random",), rounds=2)
        >>> comparison = run_comparison(config, Path("runs/two"))  # doctest: +SKIP
        >>> comparison.records["accuracy"].shape  # doctest: +SKIP
        (2, 12)
    """
    check_folder("out", folder)
    if log is not None:
        check_choice("log", log, BACKENDS)
    if from_previous and not resume:
        raise ValueError("from_previous must be given with resume, got it alone")
    with ExitStack() as stack:
        if folder.is_dir():
            # Locked before its checkpoint is read, so that no other process writes a newer one.
            stack.enter_context(run_folder.locked(folder))
        keeps_run = folder.is_dir() and not overwrite
        stored = None
        if run_folder.has_comparison(folder) and (keeps_run or config is None):
            stored = read_config(folder)
        if from_previous and keeps_run:
            run_folder.recover_checkpoint(folder)
        if config is None:
            config = stored or ComparisonConfig()
        state = _find_checkpoint(config, stored, folder, resume) if keeps_run else None

        is_finished = state is not None and state["round"] >= config.rounds
        if is_finished:
            check_present_sources(folder, config)
        if is_finished and not _is_own_file(config.dataset):
            return load_comparison(folder, config, config.rounds)
        if not is_finished and log is not None:
            check_installed(log)
        if not is_finished:
            import_sources(config, folder if keeps_run else None)
            with suppress(MissingData):  # which the trial has
                open_world(config, [config.first_seed])  # refuses a world that cannot be played
        dataset = _load_dataset(config, data, on_progress)
        if keeps_run:
            _check_unchanged(config, dataset, folder)

        if not is_finished:
            # Imported here, not at the top: a finished comparison is shown without PyTorch.
            from fedcohort.lab.trial import Trial

            trial = Trial(config, dataset, folder)
            if not folder.is_dir():
                stack.enter_context(run_folder.locked(folder))
            if overwrite:
                run_folder.discard_comparison(folder)
            _train(trial, state, log, on_progress)
    return load_comparison(folder, config, config.rounds)


def _find_checkpoint(
    config: ComparisonConfig, stored: ComparisonConfig | None, folder: Path, resume: bool
) -> dict[str, Any] | None:
    """Return the checkpoint of the run in a folder, None if it has none.

    Args:
        config: The settings that are wanted.
        stored: The settings that the folder holds, None if it holds none.
        folder: The run folder.
        resume: Whether an unfinished run may go on.

    Raises:
        ValueError: If the folder holds something else, a run of other settings, or an unfinished
            run that is not to be resumed.
    """
    if stored is None:
        if any(folder.iterdir()):
            raise ValueError(
                f"out must be a new or empty folder, got {folder}; "
                "choose another or add --overwrite"
            )
        return None
    if config != stored and resume:
        raise ValueError(
            f"settings must be those of the run in {folder} to resume it, got others; "
            "without any, its own are taken"
        )
    if config != stored:
        raise ValueError(
            f"out must not hold a run of other settings, got {folder}; "
            "choose another or add --overwrite"
        )
    state = run_folder.load_comparison_checkpoint(folder)
    done = state["round"] if state else 0
    if done < config.rounds and not resume:
        raise ValueError(
            f"out must not hold an unfinished run, got {folder} with {done} of {config.rounds} "
            "rounds; add --resume"
        )
    return state


def _is_own_file(dataset: str) -> bool:
    """Return whether a data set is a user's file, which may have changed since the run began."""
    return dataset.endswith(".npz") and Path(dataset).exists()


def _load_dataset(
    config: ComparisonConfig, data: Path | None, on_progress: Progress | None
) -> Dataset:
    def on_download(done: int, total: int | None) -> None:
        if on_progress:
            on_progress("download", done, total or done)

    return load(config.dataset, data, on_progress=on_download)


def _check_unchanged(config: ComparisonConfig, dataset: Dataset, folder: Path) -> None:
    """Refuse samples, or a recorded world, other than those that a run was begun with."""
    run_folder.check_data_digest(folder, dataset.digest)
    if config.world_file is not None:
        run_folder.check_world_digest(folder, digest_file(Path(config.world_file)))


def _train(
    trial: "Trial",
    state: dict[str, Any] | None,
    log: str | None,
    on_progress: Progress | None,
) -> None:
    """Play the rounds of a trial that are left."""
    config = trial.config
    if state is not None:
        trial.restore(state)
        run_folder.load_records(trial.folder, trial.done)  # a gap could never be filled
    run_folder.write_settings(trial.folder, config.as_dict())

    def on_round(done: int, accuracy: Floats) -> None:
        if on_progress:
            words = f"{len(trial.keys)} runs: best accuracy {accuracy.max():.3f}"
            on_progress(words, done, config.rounds)

    if log is None:
        trial.run(on_round)
        return
    with track(log, config, trial.folder, trial.done) as on_checkpoint:
        trial.run(on_round, on_checkpoint=on_checkpoint)
