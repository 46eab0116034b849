"""Run a comparison in its folder: begin it, go on with it, or merge its shards."""

from contextlib import suppress
from itertools import product
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.aggregation.compatibility import check_compatible
from fedcohort.arrays import Floats
from fedcohort.checks import check_choice
from fedcohort.data import Dataset, load
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison_folder import Comparison, load_chunk, load_comparison, read_config
from fedcohort.lab.config import ComparisonConfig, open_world
from fedcohort.lab.merging import merge_shards
from fedcohort.lab.simulation import Progress
from fedcohort.lab.sources import check_present_sources, check_present_world, import_sources
from fedcohort.lab.trackers import BACKENDS, check_installed
from fedcohort.lab.tracking import track
from fedcohort.selection.registry import SELECTORS
from fedcohort.world.options import MissingData

if TYPE_CHECKING:
    from fedcohort.lab.trial import Trial

__all__ = ["Comparison", "load_chunk", "load_comparison", "read_config", "run_comparison"]


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

    A folder that holds shards becomes the comparison of all of them, if they are finished.

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
        >>> from fedcohort.lab.config import ComparisonConfig
        >>> config = ComparisonConfig(selectors=("random",), rounds=2)
        >>> comparison = run_comparison(config, Path("runs/two"))  # doctest: +SKIP
        >>> comparison.records["accuracy"].shape  # doctest: +SKIP
        (2, 12)
    """
    run_folder.check_out(folder)
    if log is not None:
        check_choice("log", log, BACKENDS)
    if from_previous and not resume:
        raise ValueError("from_previous must be given with resume, got it alone")
    # Locked before anything is read, also if it is new: another process may begin a run there.
    with run_folder.locked(folder):
        run_folder.check_takes_comparison(folder)
        if not overwrite and run_folder.has_unmerged_shards(folder):
            merge_shards(folder, config)
        stored = None
        if run_folder.has_comparison(folder) and (config is None or not overwrite):
            stored = read_config(folder)
        if from_previous and not overwrite:
            run_folder.recover_checkpoint(folder)
        if config is None:
            config = stored or ComparisonConfig()
        goes_on = config == stored and not overwrite
        if not goes_on:
            _check_playable(config, None)  # first: a mistake in the settings is none in the folder
        state = None
        if not overwrite:
            state = _find_checkpoint(config, stored, folder, resume)
            check_present_world(folder, config)

        is_finished = state is not None and state["round"] >= config.rounds
        if is_finished:
            check_present_sources(folder, config)
        if is_finished and not _is_own_file(config.dataset):
            return load_comparison(folder, config, config.rounds)
        if not is_finished and log is not None:
            check_installed(log)
        if goes_on and not is_finished:
            _check_playable(config, folder)
        dataset = _load_dataset(config, data, on_progress)
        if not overwrite:
            run_folder.check_data_digest(folder, dataset.digest)

        if not is_finished:
            # Imported here, not at the top: a finished comparison is shown without PyTorch.
            from fedcohort.lab.trial import Trial

            trial = Trial(config, dataset, folder)
            if overwrite:
                run_folder.discard_shards(folder)  # first: it is refused if one is in use
                run_folder.discard_comparison(folder)
            _train(trial, state, log, on_progress)
    return load_comparison(folder, config, config.rounds)


def _check_playable(config: ComparisonConfig, folder: Path | None) -> None:
    """Refuse parts that cannot be imported, do not fit each other, or cannot be played.

    Args:
        config: The settings.
        folder: The folder of the run that goes on, None if a run begins.
    """
    import_sources(config, folder)
    with suppress(MissingData):  # which the trial has
        open_world(config, [config.first_seed])
    for name, aggregation in product(config.selectors, config.aggregations):
        if name in SELECTORS:  # the trial looks at others when it has made them
            check_compatible(aggregation, name, SELECTORS[name].selector)


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
        run_folder.check_free(folder)
        return None
    difference = run_folder.find_difference(vars(config), vars(stored))
    if difference is not None:
        name, there, wanted = difference
        if resume:
            raise ValueError(
                f"{name} must be {there} as in {folder} to resume it, got {wanted}; "
                f"leave all settings out to take those of {folder}"
            )
        raise ValueError(
            f"out must not hold a run of other settings, got {folder} with {name} {there}, "
            f"not {wanted}; choose another or add --overwrite"
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

    best = nan

    def on_round(done: int, accuracy: Floats) -> None:
        nonlocal best
        if not np.isnan(accuracy).all():  # models are not tested in every round
            best = float(np.nanmax(accuracy))
        if on_progress:
            words = "1 run" if len(trial.keys) == 1 else f"{len(trial.keys)} runs"
            if not isnan(best):
                words += f": best accuracy {best:.3f}"
            on_progress(words, done, config.rounds)

    if log is None:
        trial.run(on_round)
        return
    with track(log, config, trial.folder, trial.done) as on_checkpoint:
        trial.run(on_round, on_checkpoint=on_checkpoint)
